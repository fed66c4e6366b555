#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The life of mooncake.engine inside SGLang's and vLLM's connectors: the same calls with the same kinds of arguments in
the same order, from the first to the last, between real processes; every byte compared. docs/mooncake.md says of which
versions. Beside them what programs that hand over weights call: several batches at once, asked for together, and a
few bytes as a flag that the other side polls."""

import array
import asyncio
import concurrent.futures
import ctypes
import json
import random
import struct
import subprocess
import sys
import time
import unittest

from mooncake.engine import TransferEngine

try:
    import numpy
except ImportError:
    numpy = None

HOST = "127.0.0.1"
PAGE = 4096  # bytes of a page of one layer
PAGES = 64
LAYERS = 6
AUX = 512
STAGING = 65536
PATIENCE = 60


class Cache:
    """Layers, auxiliary data and a staging buffer of a worker."""

    def __init__(self):
        self.sizes = [PAGE * PAGES] * LAYERS + [AUX] * 2
        self.memory = [ctypes.create_string_buffer(size) for size in self.sizes]
        self.pointers = [ctypes.addressof(each) for each in self.memory]
        self.staging = ctypes.create_string_buffer(STAGING)
        self.staging_pointer = ctypes.addressof(self.staging)

    def layers(self):
        return self.pointers[:LAYERS]

    def write(self, layer, page, data):
        ctypes.memmove(self.pointers[layer] + page * PAGE, data, len(data))

    def read(self, layer, page):
        return ctypes.string_at(self.pointers[layer] + page * PAGE, PAGE)


def content(layer, page, seed):
    return random.Random(f"{layer} {page} {seed}").randbytes(PAGE)


def groups(own, other):
    """Runs of pages that follow each other on both sides, as connectors join them before they transfer."""
    result = []
    for here, there in zip(own, other):
        if result and here == result[-1][0] + result[-1][2] and there == result[-1][1] + result[-1][2]:
            result[-1][2] += 1
        else:
            result.append([here, there, 1])
    return result


def connected_engine(hostname):
    """As both begin."""
    engine = TransferEngine()
    assert engine.initialize(hostname, "P2PHANDSHAKE", "rdma", "") == 0
    return engine, f"{hostname}:{engine.get_rpc_port()}"


# ---- the decode side, a process of its own ----

def decode_main():
    cache = Cache()
    engine, session = connected_engine(HOST)
    assert engine.batch_register_memory(list(cache.pointers), list(cache.sizes)) == 0
    assert engine.batch_register_memory([cache.staging_pointer], [STAGING]) == 0
    packed = struct.pack(f"{len(cache.pointers)}Q", *cache.pointers)  # what is sent to the prefill side
    print(json.dumps({"session": session, "packed": packed.hex(), "staging": cache.staging_pointer}), flush=True)
    for line in sys.stdin:
        what, *arguments = json.loads(line)
        if what == "pages":
            pages, seed = arguments
            answer = [(layer, page) for layer in range(LAYERS) for page in pages
                      if cache.read(layer, page) != content(layer, page, seed)]
        elif what == "others":
            answer = [(layer, page) for layer in range(LAYERS) for page in range(PAGES)
                      if page not in arguments[0] and cache.read(layer, page) != bytes(PAGE)]
        elif what == "aux":
            answer = cache.memory[LAYERS + arguments[0]].raw.hex()
        elif what == "flag":
            deadline = time.monotonic() + PATIENCE
            while cache.staging.raw[:4] != bytes.fromhex(arguments[0]) and time.monotonic() < deadline:
                time.sleep(0.001)
            answer = cache.staging.raw[:4].hex()
        elif what == "read":
            peer, pointer, length = arguments
            answer = engine.transfer_sync_read(peer, cache.staging_pointer, pointer, length)
            answer = cache.staging.raw[:length].hex() if answer == 0 else answer
        elif what == "clear":
            for memory in cache.memory:
                ctypes.memset(memory, 0, len(memory))
            answer = None
        print(json.dumps(answer), flush=True)


class Decode:
    def __init__(self):
        self.process = subprocess.Popen([sys.executable, __file__, "decode"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        hello = json.loads(self.process.stdout.readline())
        packed = bytes.fromhex(hello["packed"])
        self.session, self.staging = hello["session"], hello["staging"]
        self.pointers = list(struct.unpack(f"{len(packed) // 8}Q", packed))

    def ask(self, *order):
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self):
        """It unregisters nothing, as vLLM's does not."""
        self.process.stdin.close()
        status = self.process.wait(PATIENCE)
        self.process.stdout.close()
        return status

    def kill(self):
        self.process.kill()
        self.end()


class Prefill(unittest.TestCase):
    def setUp(self):
        self.cache = Cache()
        self.engine, self.session = connected_engine(HOST)
        self.decodes = []

    def tearDown(self):
        for decode in self.decodes:
            if decode.process.poll() is None:
                self.assertEqual(decode.end(), 0)

    def decode(self):
        self.decodes.append(Decode())
        return self.decodes[-1]

    def fill(self, pairs, seed):
        for layer in range(LAYERS):
            for own, other in pairs:
                self.cache.write(layer, own, content(layer, other, seed))


# ---- SGLang ----

class Sglang(Prefill):
    """Manager of the prefill side: registers once, a pool of threads transfers, sessions that failed are probed, and
    all is unregistered when the role changes, to be registered again by the next manager of the same engine."""

    def register(self):
        regions = list(dict.fromkeys(zip(self.cache.pointers, self.cache.sizes)))
        pointers, lengths = zip(*regions)
        self.assertEqual(self.engine.batch_register_memory(list(pointers), list(lengths)), 0)

    def transfer(self, session, blocks):
        if not blocks:
            return 0
        sources, destinations, lengths = zip(*blocks)
        return self.engine.batch_transfer_sync_write(session, list(sources), list(destinations), list(lengths))

    def send_pages(self, decode, pairs):
        """Blocks of all layers in one call."""
        blocks = [(source + here * PAGE, destination + there * PAGE, count * PAGE)
                  for source, destination in zip(self.cache.layers(), decode.pointers)
                  for here, there, count in groups(*zip(*pairs))]
        return self.transfer(decode.session, blocks)

    def send_aux(self, decode, index):
        return self.transfer(decode.session, [(self.cache.pointers[LAYERS + index], decode.pointers[LAYERS + index],
                                               AUX)])

    def requests(self, decode, seed, executor):
        """Four requests at once, of several chunks each, and their auxiliary data behind the last chunk."""
        pages = random.Random(seed).sample(range(PAGES), 48)
        pairs = list(zip(pages, pages[1:] + pages[:1]))
        pairs[:16] = list(zip(sorted(own for own, _ in pairs[:16]), sorted(other for _, other in pairs[:16])))
        self.fill(pairs, seed)

        def one(number):
            mine = pairs[number * 12:number * 12 + 12]
            return [self.send_pages(decode, mine[:6]), self.send_pages(decode, mine[6:])]
        self.assertEqual(list(executor.map(one, range(4))), [[0, 0]] * 4)
        ctypes.memset(self.cache.pointers[LAYERS], seed & 255, AUX)
        self.assertEqual(self.send_aux(decode, 0), 0)
        sent = [other for _, other in pairs]
        self.assertEqual(decode.ask("pages", sent, seed), [])
        self.assertEqual(decode.ask("others", sent), [])
        self.assertEqual(decode.ask("aux", 0), bytes([seed & 255] * AUX).hex())

    def test_life(self):
        self.register()
        one, two = self.decode(), self.decode()
        with concurrent.futures.ThreadPoolExecutor(4) as executor:
            for seed, decode in enumerate((one, two, two, one)):
                decode.ask("clear")
                self.requests(decode, seed, executor)
            one.kill()
            began = time.monotonic()
            with self.assertLogs("hte.mooncake"):
                self.assertLess(self.send_pages(one, [(0, 0)]), 0)  # the session is taken for failed
                self.assertNotEqual(self.engine.send_probe(one.session), 0)
            self.assertLess(time.monotonic() - began, PATIENCE)
            self.assertEqual(self.engine.send_probe(two.session), 0)
            self.requests(self.decode(), 7, executor)
        self.assertEqual(self.engine.batch_unregister_memory(list(self.cache.pointers)), 0)
        self.register()
        two.ask("clear")
        with concurrent.futures.ThreadPoolExecutor(4) as executor:
            self.requests(two, 9, executor)
        self.assertEqual(self.engine.batch_unregister_memory(list(self.cache.pointers)), 0)

    def test_staging(self):
        """One call for what was gathered into a buffer that was registered by itself."""
        self.assertEqual(self.engine.batch_register_memory([self.cache.staging_pointer], [STAGING]), 0)
        decode = self.decode()
        self.cache.staging.raw = random.Random(3).randbytes(STAGING)
        blocks = [(self.cache.staging_pointer, decode.staging, 1000),
                  (self.cache.staging_pointer + 1000, decode.staging + 1000, STAGING - 1000)]
        self.assertEqual(self.transfer(decode.session, blocks), 0)
        self.assertEqual(decode.ask("flag", self.cache.staging.raw[:4].hex()), self.cache.staging.raw[:4].hex())


# ---- vLLM ----

class Vllm(Prefill):
    """Producer: requests come to an asyncio loop, which has workers that hand transfers to a pool of threads."""

    def plan(self, decode, pairs):
        """Of all requests of one message: three lists of int."""
        sources, destinations, lengths = [], [], []
        for layer in range(LAYERS):
            for here, there, count in groups(*zip(*pairs)):
                sources.append(self.cache.pointers[layer] + here * PAGE)
                destinations.append(decode.pointers[layer] + there * PAGE)
                lengths.append(count * PAGE)
        return sources, destinations, lengths

    async def produce(self, messages, executor):
        queue, results = asyncio.Queue(), []

        async def worker():
            while True:
                decode, pairs = await queue.get()
                results.append(await asyncio.get_running_loop().run_in_executor(
                    executor, self.engine.batch_transfer_sync_write, decode.session, *self.plan(decode, pairs)))
                queue.task_done()
        workers = [asyncio.create_task(worker()) for _ in range(10)]
        for message in messages:
            await queue.put(message)
        await queue.join()
        for each in workers:
            each.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        return results

    def test_life(self):
        self.assertEqual(self.engine.batch_register_memory(self.cache.pointers, self.cache.sizes), 0)
        decodes = [self.decode(), self.decode()]
        pairs = [(page, PAGES - 1 - page if page % 4 == 0 else page) for page in range(PAGES)]
        pairs = [(own, other) for own, other in pairs if own % 8 < 4 and other % 8 < 4]
        self.fill(pairs, 5)
        messages = [(decode, pairs[at:at + 4]) for at in range(0, len(pairs), 4) for decode in decodes]
        with concurrent.futures.ThreadPoolExecutor(10) as executor:
            results = asyncio.run(self.produce(messages, executor))
        self.assertEqual(results, [0] * len(messages))
        sent = [other for _, other in pairs]
        for decode in decodes:
            self.assertEqual(decode.ask("pages", sent, 5), [])
            self.assertEqual(decode.ask("others", sent), [])

    def test_encoder_cache(self):
        """A pool registered as one, results of any length."""
        pool = self.cache.pointers[0]
        self.assertEqual(self.engine.register_memory(pool, PAGE * PAGES), 0)
        decode = self.decode()
        lengths = [1, PAGE - 1, 3 * PAGE + 7]
        self.cache.memory[0].raw = b"".join(content(0, page, 4) for page in range(PAGES))
        offsets = [0, PAGE + 1, 2 * PAGE]
        result = self.engine.batch_transfer_sync_write(
            f"{HOST}:{decode.session.split(':')[1]}", [pool + offset for offset in offsets],
            [decode.pointers[1], decode.pointers[1] + PAGE, decode.pointers[1] + 5 * PAGE], lengths)
        self.assertEqual(result, 0)
        self.assertEqual(self.engine.transfer_sync_write(decode.session, pool, decode.pointers[LAYERS], AUX), 0)
        self.assertEqual(decode.ask("aux", 0), content(0, 0, 4)[:AUX].hex())


# ---- weights ----

class Weights(Prefill):
    def test_many_sessions(self):
        """A batch for each session, all asked for in one call."""
        self.assertEqual(self.engine.batch_register_memory(self.cache.pointers, self.cache.sizes), 0)
        decodes = [self.decode() for _ in range(3)]
        self.fill([(page, page) for page in range(PAGES)], 6)
        kinds = [list, tuple, lambda numbers: array.array("Q", numbers)]
        if numpy is not None:
            kinds += [numpy.array, lambda numbers: numpy.array(numbers, dtype=numpy.uint64).tolist()]
        for kind in kinds:
            numbers = []
            for decode in decodes:
                decode.ask("clear")
                number = self.engine.batch_transfer_async_write(
                    decode.session, kind(self.cache.layers()), kind(decode.pointers[:LAYERS]),
                    kind([PAGE * PAGES] * LAYERS))
                self.assertNotEqual(number, 0)
                numbers.append(number)
            self.assertEqual(self.engine.get_batch_transfer_status(numbers), 0)
            for decode in decodes:
                self.assertEqual(decode.ask("pages", list(range(PAGES)), 6), [])

    @unittest.skipIf(numpy is None, "no numpy")
    def test_numbers_of_numpy(self):
        """Addresses that were computed with indices of numpy's are not int."""
        self.assertEqual(self.engine.batch_register_memory(self.cache.pointers, self.cache.sizes), 0)
        decode = self.decode()
        self.fill([(page, page) for page in range(8)], 8)
        pages = numpy.arange(8, dtype=numpy.int32)
        arguments = [[base + page.astype(numpy.int64) * PAGE for page in pages]
                     for base in (self.cache.pointers[2], decode.pointers[2])] + [[numpy.int64(PAGE)] * 8]
        self.assertEqual(self.engine.batch_transfer_sync_write(decode.session, *arguments), 0)
        bad = decode.ask("pages", list(range(8)), 8)
        self.assertEqual([each for each in bad if each[0] == 2], [])

    def test_flag(self):
        """The reader takes a bucket by itself, and is told, and tells, by four bytes."""
        self.assertEqual(self.engine.batch_register_memory([self.cache.staging_pointer, self.cache.pointers[0]],
                                                           [STAGING, self.cache.sizes[0]]), 0)
        decode = self.decode()
        bucket = random.Random(1).randbytes(3 * PAGE)
        self.cache.write(0, 0, bucket)
        self.assertEqual(decode.ask("read", self.session, self.cache.pointers[0], len(bucket)), bucket.hex())
        self.cache.staging.raw = bytes.fromhex("abdcef88") + bytes(STAGING - 4)
        self.assertEqual(self.engine.transfer_sync_write(decode.session, self.cache.staging_pointer, decode.staging, 4),
                         0)
        self.assertEqual(decode.ask("flag", "abdcef88"), "abdcef88")


if __name__ == "__main__":
    if sys.argv[1:] == ["decode"]:
        decode_main()
    else:
        unittest.main()
