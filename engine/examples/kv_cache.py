#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""KV cache blocks from a prefill process to a decode process, as disaggregated inference moves them.

    kv_cache.py                        both processes, on this machine
    kv_cache.py decode                 in one terminal: prints its name
    kv_cache.py prefill NAME           in the other, on this or another machine

The decode process owns a pool of blocks. For each prompt it picks free blocks, tells the prefill process where they
are, and goes on. The prefill process computes the blocks (here: bytes that follow from the prompt), writes them
straight into the decode process's pool, one batch per prompt, and a notification arrives behind the last byte. The
decode process then checks every byte of every block.
"""

import argparse
import glob
import hashlib
import json
import os
import random
import subprocess
import sys
import time

# The modules of the source tree that this lies in, or else those that were installed below the same prefix.
HERE = os.path.dirname(os.path.abspath(__file__))
if os.path.isdir(os.path.join(HERE, "..", "python", "hte")):
    sys.path.insert(0, os.path.join(HERE, "..", "python"))
else:
    sys.path += glob.glob(os.path.join(HERE, *[".."] * 4, "lib", "python3*", "*-packages"))
try:
    import hte  # noqa: E402
except ImportError as missing:
    sys.exit("kv_cache: %s" % missing)

PATIENCE = 60  # seconds for the other side


def compute_block(prompt, index, size):
    """What a model would have computed: the same on both sides, different everywhere."""
    return hashlib.shake_128(("%s/%d" % (prompt, index)).encode()).digest(size)


def notifications(engine, until):
    """Those that arrive, until `until()` says that it is enough."""
    deadline = time.monotonic() + PATIENCE
    while not until():
        arrived = engine.notifications()
        yield from arrived
        if arrived:
            deadline = time.monotonic() + PATIENCE
        elif time.monotonic() > deadline:
            sys.exit("kv_cache: nothing heard of the other side for %d s" % PATIENCE)
        else:
            time.sleep(0.001)


class Decode:
    def __init__(self, engine, options):
        self.engine, self.options = engine, options
        self.pool = engine.allocate(options.pool * options.block)
        self.free = list(range(options.pool))
        random.Random(1).shuffle(self.free)  # a pool in use has no order
        self.waiting = {}  # prompt: its block numbers
        self.asked = self.checked = self.wrong = self.bytes = 0

    def ask(self, prefill):
        """As many prompts as the pool has room for."""
        while self.asked < self.options.prompts and len(self.free) >= self.options.blocks:
            prompt = "prompt %d" % self.asked
            blocks = [self.free.pop() for _ in range(self.options.blocks)]
            self.waiting[prompt] = blocks
            prefill.notify("wanted", json.dumps({
                "prompt": prompt, "size": self.options.block,
                "addresses": [self.pool.addr + block * self.options.block for block in blocks]}))
            self.asked += 1

    def check(self, prompt):
        for index, block in enumerate(self.waiting.pop(prompt)):
            start = block * self.options.block
            got = self.pool.view[start:start + self.options.block]
            if got != compute_block(prompt, index, self.options.block):
                self.wrong += 1
                print("kv_cache: %s: block %d is wrong" % (prompt, index), file=sys.stderr)
            got[:] = bytes(self.options.block)  # so that a block that does not arrive next time shows
            self.free.append(block)
            self.bytes += self.options.block
        self.checked += 1

    def run(self):
        print(self.engine.name, flush=True)
        prefill, start = None, 0
        for message in notifications(self.engine, lambda: self.checked == self.options.prompts):
            if message.name == "prefill is here":
                prefill, start = self.engine.open(message.sender), time.monotonic()
            elif message.name == "ready":
                self.check(message.text)
            if prefill is not None:
                self.ask(prefill)
        prefill.notify("finished")
        seconds = time.monotonic() - start
        print(json.dumps({"prompts": self.checked, "blocks": self.checked * self.options.blocks, "bytes": self.bytes,
                          "seconds": round(seconds, 3), "wrong": self.wrong, "verified": self.wrong == 0}))
        return 0 if self.wrong == 0 else 1


def prefill(engine, decode_name):
    staging = None
    finished = []
    with engine.open(decode_name) as decode:
        decode.notify("prefill is here")
        for message in notifications(engine, lambda: finished):
            if message.name == "finished":
                finished.append(True)
                continue
            wanted = json.loads(message.text)
            size, addresses = wanted["size"], wanted["addresses"]
            if staging is None or len(staging) < size * len(addresses):
                staging = engine.allocate(size * len(addresses))
            requests = []
            for index, address in enumerate(addresses):
                staging.view[index * size:(index + 1) * size] = compute_block(wanted["prompt"], index, size)
                requests.append(hte.write(decode, staging.addr + index * size, address, size))
            with engine.batch(len(requests)) as batch:
                batch.submit(requests, notify=("ready", wanted["prompt"]))
                batch.wait(PATIENCE)
    return 0


def run_both(arguments):
    command = [sys.executable, os.path.abspath(__file__)] + arguments
    with subprocess.Popen(command + ["decode"], stdout=subprocess.PIPE, text=True) as decode:
        name = decode.stdout.readline().strip()
        other = subprocess.run(command + ["prefill", name], check=False) if name else None
        print(decode.stdout.read(), end="")
        decode.wait()
    return decode.returncode or (other.returncode if other else 1)


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("%s is less than 1" % text)
    return value


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], epilog="Exit status 0: every byte right.")
    parser.add_argument("--block", type=positive, default=65536 * 2, help="bytes of a block (%(default)s)")
    parser.add_argument("--blocks", type=positive, default=24, help="of a prompt (%(default)s)")
    parser.add_argument("--prompts", type=positive, default=50, help="(%(default)s)")
    parser.add_argument("--pool", type=positive, default=128, help="blocks of the decode process (%(default)s)")
    parser.add_argument("--metadata", help="URL of a metadata server (default: none)")
    parser.add_argument("--bind", help="address to be reached at (default: the management address)")
    parser.add_argument("role", nargs="?", choices=["decode", "prefill"])
    parser.add_argument("name", nargs="?", help="of the decode process")
    options = parser.parse_args()
    if options.role is None:
        return run_both(sys.argv[1:])
    if options.role == "prefill" and options.name is None:
        parser.error("prefill needs the name that decode printed")
    if options.blocks > options.pool:
        parser.error("--pool %d has no room for --blocks %d" % (options.pool, options.blocks))
    name = None if options.metadata is None else "kv-%s-%d" % (options.role, os.getpid())
    try:
        with hte.Engine(metadata=options.metadata, name=name, bind_host=options.bind) as engine:
            return Decode(engine, options).run() if options.role == "decode" else prefill(engine, options.name)
    except hte.Error as error:
        sys.exit("kv_cache: %s" % error)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
