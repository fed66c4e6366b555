#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Agents of NIXL, each in a process of its own, with its plugin for Mooncake over libtransfer_engine.so: writes, reads,
handles that are posted again and again, prepared lists, notifications, every byte compared; and a target that is
killed. By hand, where NIXL with that plugin is installed (docs/nixl.md): python3 nixl_agents.py [BACKEND]"""

import ctypes
import json
import random
import subprocess
import sys
import time

BACKEND = sys.argv[1] if len(sys.argv) > 1 else "Mooncake"  # as the plugin's file is named
SIZE = 64 << 20
PATIENCE = 60

try:
    from nixl._api import nixl_agent, nixl_agent_config
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)


def bytes_of(seed, length):
    return random.Random(seed).randbytes(length)


class Agent:
    """With SIZE bytes of memory."""

    def __init__(self, name):
        self.agent = nixl_agent(name, nixl_agent_config(enable_prog_thread=False, backends=[BACKEND]))
        self.memory = ctypes.create_string_buffer(SIZE)
        self.base = ctypes.addressof(self.memory)
        self.registered = self.agent.register_memory([(self.base, SIZE, 0, "")], "DRAM")

    def fill(self, offset, data):
        ctypes.memmove(self.base + offset, data, len(data))

    def holds(self, offset, data):
        return ctypes.string_at(self.base + offset, len(data)) == data


def say(answer):
    print("answer " + json.dumps(answer), flush=True)


def target_main(name):
    target = Agent(name)
    say([target.agent.get_agent_metadata().hex(), target.base])
    for line in sys.stdin:
        what, *arguments = json.loads(line)
        answer = None
        if what == "holds":
            offset, seed, length = arguments
            answer = target.holds(offset, bytes_of(seed, length))
        elif what == "fill":
            offset, seed, length = arguments
            target.fill(offset, bytes_of(seed, length))
        elif what == "notifs":
            answer, deadline = [], time.monotonic() + PATIENCE
            while len(answer) < arguments[0] and time.monotonic() < deadline:
                for texts in target.agent.get_new_notifs().values():
                    answer += [text.decode() for text in texts]
        say(answer)
    target.agent.deregister_memory(target.registered)


class Target:
    def __init__(self, name):
        self.name = name
        self.process = subprocess.Popen([sys.executable, __file__, BACKEND, name], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        metadata, self.base = self.answer()
        self.metadata = bytes.fromhex(metadata)

    def answer(self):
        line = " "
        while line and not line.startswith("answer "):  # NIXL prints there, too
            line = self.process.stdout.readline()
        return json.loads(line[7:])

    def ask(self, *order):
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def end(self):
        self.process.stdin.close()
        return self.process.wait(PATIENCE)


class Run:
    def __init__(self):
        self.own, self.passed, self.failed = Agent("initiator"), 0, 0
        self.agent = self.own.agent

    def check(self, what, is_right):
        self.passed += is_right
        self.failed += not is_right
        print(f"{'ok  ' if is_right else 'FAIL'} {what}", flush=True)

    def finish(self, handle):
        """Its last state, and when that came."""
        began, state = time.monotonic(), "PROC"
        while state == "PROC" and time.monotonic() - began < PATIENCE:
            try:
                state = self.agent.check_xfer_state(handle)
            except Exception as error:  # of NIXL's own classes, which other versions return as ERR
                state = type(error).__name__
        return state, time.monotonic() - began

    def lists(self, target, spans):
        """spans: own offset, its offset, length"""
        return (self.agent.get_xfer_descs([(self.own.base + here, length, 0) for here, _, length in spans], "DRAM"),
                self.agent.get_xfer_descs([(target.base + there, length, 0) for _, there, length in spans], "DRAM"))

    def transfer(self, target, operation, spans, text):
        handle = self.agent.initialize_xfer(operation, *self.lists(target, spans), target.name, text)
        state = self.agent.transfer(handle)
        if state == "PROC":
            state = self.finish(handle)[0]
        self.agent.release_xfer_handle(handle)
        return state

    def test_large(self, target):
        spans = [(i << 20, (63 - i) << 20, 1 << 20) for i in range(64)]
        for i in range(64):
            self.own.fill(i << 20, bytes_of(i, 1 << 20))
        self.check("WRITE 64 x 1 MiB", self.transfer(target, "WRITE", spans, b"large") == "DONE")
        self.check("its notification", target.ask("notifs", 1) == ["large"])
        self.check("its bytes", all(target.ask("holds", (63 - i) << 20, i, 1 << 20) for i in range(64)))
        ctypes.memset(self.own.base, 0, SIZE)
        self.check("READ 64 x 1 MiB", self.transfer(target, "READ", spans, b"read") == "DONE")
        self.check("its notification", target.ask("notifs", 1) == ["read"])
        self.check("its bytes", all(self.own.holds(i << 20, bytes_of(i, 1 << 20)) for i in range(64)))

    def test_small(self, target):
        """Blocks that lie apart on one side, as of a KV cache."""
        blocks = list(range(1000))
        random.Random(5).shuffle(blocks)
        spans = [(i * 4096, block * 16384, 4096) for i, block in enumerate(blocks)]
        data = bytes_of(77, 1000 * 4096)
        self.own.fill(0, data)
        self.check("WRITE 1000 x 4 KiB", self.transfer(target, "WRITE", spans, b"small") == "DONE")
        self.check("its notification", target.ask("notifs", 1) == ["small"])
        ctypes.memset(self.own.base, 0, SIZE)
        self.check("READ of them", self.transfer(target, "READ", spans, b"") == "DONE")
        self.check("their bytes", self.own.holds(0, data))

    def test_again(self, target, times=100):
        """One handle of prepared lists."""
        spans = [(0, 1 << 20, 65536), (1 << 19, 3 << 20, 100001)]
        local, remote = self.lists(target, spans)
        sides = [self.agent.prep_xfer_dlist("NIXL_INIT_AGENT", local), self.agent.prep_xfer_dlist(target.name, remote)]
        handle = self.agent.make_prepped_xfer("WRITE", sides[0], [0, 1], sides[1], [0, 1], b"")
        done = right = 0
        for seed in range(times):
            self.own.fill(1 << 19, bytes_of(seed, 100001))
            state = self.agent.transfer(handle, str(seed).encode())
            done += state == "DONE" or self.finish(handle)[0] == "DONE"
            right += target.ask("holds", 3 << 20, seed, 100001)
        self.agent.release_xfer_handle(handle)
        for side in sides:
            self.agent.release_dlist_handle(side)
        self.check(f"one handle, {done} of {times} times", done == times)
        self.check(f"bytes {right} of {times} times", right == times)
        self.check("notifications in order", target.ask("notifs", times) == [str(seed) for seed in range(times)])

    def test_dead(self, target):
        spans = [(i << 20, i << 20, 1 << 20) for i in range(64)]
        handle = self.agent.initialize_xfer("WRITE", *self.lists(target, spans), target.name, b"")
        self.agent.transfer(handle)
        target.process.kill()
        target.process.wait()
        state, seconds = self.finish(handle)
        self.check(f"target killed under way: {state} after {seconds:.2f} s", state in ("ERR", "DONE", "nixlBackendError"))
        self.agent.release_xfer_handle(handle)
        try:
            state = self.transfer(target, "WRITE", spans, b"")
        except Exception as error:
            state = type(error).__name__
        self.check(f"after that: {state}", state in ("ERR", "nixlBackendError", "nixlRemoteDisconnectError"))

    def run(self):
        one, two = Target("one"), Target("two")
        for target in (one, two):
            name = self.agent.add_remote_agent(target.metadata)
            self.check("metadata loaded", name in (target.name, target.name.encode()))
        for test in (self.test_large, self.test_small, self.test_again):
            test(one)
        self.test_dead(two)
        self.check("the other one still serves", self.transfer(one, "WRITE", [(0, 0, 4096)], b"") == "DONE")
        self.check("and ends well", one.end() == 0)
        self.agent.deregister_memory(self.own.registered)
        print(f"{self.passed} passed, {self.failed} failed, 0 skipped")
        return self.failed > 0


if __name__ == "__main__":
    if len(sys.argv) > 2:
        target_main(sys.argv[2])
    else:
        sys.exit(Run().run())
