#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""mooncake.engine over hte, called as SGLang's and vLLM's connectors call it: two processes, every byte compared."""

import asyncio
import concurrent.futures
import ctypes
import json
import logging
import os
import signal
import subprocess
import sys
import time
import unittest
import unittest.mock

from mooncake import engine as module
from mooncake.engine import TransferEngine, TransferNotify, TransferOpcode

os.environ["HTE_SAME_HOST"] = "off"  # else peers that stand still are read and written all the same

HOST = "127.0.0.1"
BLOCK = 16384   # bytes of a KV block of one layer
BLOCKS = 32     # of a layer
LAYERS = 4
LAYER = BLOCK * BLOCKS
AUX = 1000


def pattern(seed, length):
    return bytes((seed * 7 + i * 37 + (i >> 8)) & 255 for i in range(length))


class Pool:
    """KV caches of some layers and the small memory beside them, as a worker registers them: by address."""

    def __init__(self):
        self.memory = [ctypes.create_string_buffer(LAYER) for _ in range(LAYERS)] + [ctypes.create_string_buffer(AUX)]
        self.addresses = [ctypes.addressof(each) for each in self.memory]
        self.lengths = [LAYER] * LAYERS + [AUX]

    def block(self, layer, number):
        return ctypes.string_at(self.addresses[layer] + number * BLOCK, BLOCK)

    def fill(self, layer, number, seed):
        ctypes.memmove(self.addresses[layer] + number * BLOCK, pattern(seed, BLOCK), BLOCK)


class Peer:
    """The decode side in a process of its own: obeys one line at a time, answers with JSON."""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, __file__, "peer"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        hello = self.answer()
        self.session, self.addresses, self.first = hello["session"], hello["addresses"], hello["first"]

    def answer(self):
        return json.loads(self.process.stdout.readline())

    def ask(self, *order):
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def pause(self):
        """Returns when it stands still: the signal alone takes its time."""
        os.kill(self.process.pid, signal.SIGSTOP)
        os.waitpid(self.process.pid, os.WUNTRACED)

    def resume(self):
        os.kill(self.process.pid, signal.SIGCONT)

    def stop(self):
        if self.process.poll() is not None:
            return self.process.returncode
        self.resume()
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(30)

    def kill(self):
        self.process.kill()
        self.process.wait(30)
        self.process.stdin.close()
        self.process.stdout.close()


def peer_main():
    pool, engine = Pool(), TransferEngine()
    assert engine.initialize(HOST, "P2PHANDSHAKE", "rdma", "") == 0
    assert engine.batch_register_memory(pool.addresses, pool.lengths) == 0
    session = "%s:%d" % (HOST, engine.get_rpc_port())
    print(json.dumps({"session": session, "addresses": pool.addresses,
                      "first": engine.get_first_buffer_address(session)}), flush=True)
    for line in sys.stdin:
        what, *arguments = json.loads(line)
        answer = None
        if what == "block":
            layer, number, seed = arguments
            answer = pool.block(layer, number) == pattern(seed, BLOCK)
        elif what == "zero":
            layer, number = arguments
            answer = pool.block(layer, number) == bytes(BLOCK)
        elif what == "aux":
            answer = pool.memory[LAYERS].raw.rstrip(b"\0").decode()
        elif what == "fill":
            pool.fill(*arguments)
        elif what == "notifies":
            answer = [(each.name, each.msg) for each in engine.get_notifies()]
        print(json.dumps(answer), flush=True)
    assert engine.batch_unregister_memory(pool.addresses) == 0


class Connected(unittest.TestCase):
    def setUp(self):
        self.peer = Peer()
        self.addCleanup(self.peer.stop)
        self.pool = Pool()
        self.engine = TransferEngine()
        self.assertEqual(self.engine.initialize(HOST, "P2PHANDSHAKE", "rdma", ""), 0)
        self.assertEqual(self.engine.batch_register_memory(self.pool.addresses, self.pool.lengths), 0)

    def blocks(self, pairs):
        """Addresses and lengths for (own block, its block) of every layer, as connectors make them."""
        buffers, peers, lengths = [], [], []
        for own, other in zip(self.pool.addresses[:LAYERS], self.peer.addresses[:LAYERS]):
            for here, there in pairs:
                buffers.append(own + here * BLOCK)
                peers.append(other + there * BLOCK)
                lengths.append(BLOCK)
        return buffers, peers, lengths

    def fill(self, pairs):
        for layer in range(LAYERS):
            for here, _ in pairs:
                self.pool.fill(layer, here, layer * 100 + here)

    def assert_arrived(self, pairs):
        for layer in range(LAYERS):
            for here, there in pairs:
                self.assertTrue(self.peer.ask("block", layer, there, layer * 100 + here), (layer, here, there))


class Sglang(Connected):
    """SGLang's prefill side: several threads write requests to one session; auxiliary data by itself; probes."""

    def test_prefill(self):
        chunks = [[(i, BLOCKS - 1 - i) for i in range(start, start + 7)] for start in range(0, 28, 7)]
        for chunk in chunks:
            self.fill(chunk)
        with concurrent.futures.ThreadPoolExecutor(4) as executor:
            results = list(executor.map(lambda chunk: self.engine.batch_transfer_sync_write(
                self.peer.session, *self.blocks(chunk)), chunks))
        self.assertEqual(results, [0, 0, 0, 0])
        for chunk in chunks:
            self.assert_arrived(chunk)
        for layer in range(LAYERS):  # block 3 there was nobody's
            self.assertTrue(self.peer.ask("zero", layer, 3))
        aux = self.pool.addresses[LAYERS]
        self.assertEqual(self.engine.write_bytes_to_buffer(aux, b"first token 17", 14), 0)
        self.assertEqual(self.engine.transfer_sync_write(self.peer.session, aux, self.peer.addresses[LAYERS], 14), 0)
        self.assertEqual(self.peer.ask("aux"), "first token 17")
        self.assertEqual(self.engine.send_probe(self.peer.session), 0)
        self.assertEqual(self.engine.batch_unregister_memory(self.pool.addresses), 0)

    def test_nothing_to_send(self):
        self.assertEqual(self.engine.batch_transfer_sync_write(self.peer.session, [], [], []), 0)
        self.assertEqual(self.engine.batch_register_memory([], []), 0)
        self.assertEqual(self.engine.batch_unregister_memory([]), 0)

    def test_session_that_died(self):
        """Stopped, so that the transfer is surely under way when it is killed."""
        arguments = self.blocks([(1, 1)])
        self.assertEqual(self.engine.batch_transfer_sync_write(self.peer.session, *arguments), 0)
        self.peer.pause()
        number = self.engine.batch_transfer_async_read(self.peer.session, *arguments)
        self.assertNotEqual(number, 0)
        time.sleep(0.1)
        self.assertEqual(self.engine.transfer_check_status(number), 0)
        self.peer.kill()
        start = time.monotonic()
        with self.assertLogs("hte.mooncake"):
            self.assertEqual(self.engine.get_batch_transfer_status([number]), -1)
            self.assertEqual(self.engine.batch_transfer_sync_write(self.peer.session, *arguments), -1)
            self.assertNotEqual(self.engine.send_probe(self.peer.session), 0)
        self.assertLess(time.monotonic() - start, 40)
        self.assertEqual(self.engine.batch_unregister_memory(self.pool.addresses), 0)  # nothing holds it

    def test_session_that_hangs(self):
        """Its time is over: -1, and what is left of it does not stand in the way of others."""
        arguments = self.blocks([(i, i) for i in range(BLOCKS)])
        with unittest.mock.patch.dict(os.environ, HTE_WINDOW="1", HTE_THREADS="1"):  # most of it is still queued
            self.engine = TransferEngine()
            self.assertEqual(self.engine.initialize(HOST, "P2PHANDSHAKE", "rdma", ""), 0)
        self.assertEqual(self.engine.batch_register_memory(self.pool.addresses, self.pool.lengths), 0)
        self.engine._patience = 0.5
        self.assertEqual(self.engine.batch_transfer_sync_write(self.peer.session, *arguments), 0)
        self.peer.pause()
        with self.assertLogs("hte.mooncake"):
            self.assertEqual(self.engine.batch_transfer_sync_read(self.peer.session, *arguments), -1)
        left = list(self.engine._left)  # nothing, when the engine gave it up by itself before
        other = Peer()
        self.addCleanup(other.stop)
        result = self.engine.transfer_sync_write(other.session, self.pool.addresses[0], other.addresses[0], BLOCK)
        self.assertEqual(result, 0)
        self.peer.resume()
        self.assertTrue(self.peer.ask("zero", 0, 5))
        for batch in left:
            self.assertEqual(batch.outcome(30).code, 3)  # CANCELED, but for what was on its way
        deadline = time.monotonic() + 30
        while self.engine._left and time.monotonic() < deadline:
            self.engine.transfer_sync_write(other.session, self.pool.addresses[0], other.addresses[0], BLOCK)
        self.assertEqual(self.engine._left, [])
        self.assertEqual(self.engine.batch_unregister_memory(self.pool.addresses), 0)


class Vllm(Connected):
    """vLLM's connector: an asyncio loop hands lists to a pool of threads."""

    def send(self, pairs):
        async def run():
            loop = asyncio.get_running_loop()
            with concurrent.futures.ThreadPoolExecutor(10) as executor:
                return await asyncio.gather(*[loop.run_in_executor(
                    executor, self.engine.batch_transfer_sync_write, self.peer.session, *self.blocks([pair]))
                    for pair in pairs])
        return asyncio.run(run())

    def test_send_blocks(self):
        pairs = [(i, (i * 5) % BLOCKS) for i in range(20)]
        self.fill(pairs)
        self.assertEqual(self.send(pairs), [0] * 20)
        self.assert_arrived(pairs)


class Everything(Connected):
    """What else Mooncake's class has."""

    def test_reads(self):
        self.peer.ask("fill", 2, 4, 77)
        arguments = self.pool.addresses[2], self.peer.addresses[2] + 4 * BLOCK, BLOCK
        for read in (lambda: self.engine.transfer_sync_read(self.peer.session, *arguments),
                     lambda: self.engine.transfer_sync(self.peer.session, *arguments, TransferOpcode.Read),
                     lambda: self.engine.batch_transfer_sync_read(self.peer.session, *[[each] for each in arguments]),
                     lambda: self.engine.batch_transfer_sync(self.peer.session, *[[each] for each in arguments],
                                                             opcode=module.Read)):
            ctypes.memset(self.pool.addresses[2], 0, LAYER)
            self.assertEqual(read(), 0)
            self.assertEqual(self.pool.block(2, 0), pattern(77, BLOCK))

    def test_async(self):
        pairs = [(i, i) for i in range(8)]
        self.fill(pairs)
        numbers = [self.engine.batch_transfer_async_write(self.peer.session, *self.blocks([pair])) for pair in pairs]
        self.assertNotIn(0, numbers)
        self.assertEqual(self.engine.get_batch_transfer_status(numbers), 0)
        self.assert_arrived(pairs)
        with self.assertLogs("hte.mooncake"):
            self.assertEqual(self.engine.get_batch_transfer_status(numbers[:1]), -1)  # void now
            self.assertEqual(self.engine.transfer_check_status(numbers[0]), -1)
        self.pool.fill(0, 9, 9)
        number = self.engine.transfer_submit_write(self.peer.session, self.pool.addresses[0] + 9 * BLOCK,
                                                   self.peer.addresses[0] + 9 * BLOCK, BLOCK)
        deadline = time.monotonic() + 30
        while True:
            state = self.engine.transfer_check_status(number)
            if state != 0 or time.monotonic() > deadline:
                break
        self.assertEqual(state, 1)
        self.assertTrue(self.peer.ask("block", 0, 9, 9))
        self.assertEqual(self.engine._flights, {})

    def test_notifies(self):
        result = self.engine.transfer_sync(self.peer.session, self.pool.addresses[0], self.peer.addresses[0], 64,
                                           TransferOpcode.Write, TransferNotify("request 7", "done"))
        self.assertEqual(result, 0)
        found, deadline = [], time.monotonic() + 30
        while not found and time.monotonic() < deadline:
            found = self.peer.ask("notifies")
        self.assertEqual(found, [["request 7", "done"]])
        self.assertEqual(self.engine.get_notifies(), [])

    def test_buffers(self):
        own = "%s:%d" % (HOST, self.engine.get_rpc_port())
        self.assertEqual(self.engine.get_first_buffer_address(own), min(self.pool.addresses))
        self.assertEqual(self.engine.get_first_buffer_address(self.peer.session), min(self.peer.addresses))
        self.assertEqual(self.peer.first, min(self.peer.addresses))
        buffer = self.engine.allocate_managed_buffer(100000)
        self.assertNotEqual(buffer, 0)
        self.assertEqual(self.engine.write_bytes_to_buffer(buffer, b"abcdef", 5), 0)
        self.assertEqual(self.engine.read_bytes_from_buffer(buffer, 6), b"abcde\0")
        with self.assertLogs("hte.mooncake"):
            self.assertEqual(self.engine.write_bytes_to_buffer(buffer, b"abc", 4), -1)
        self.assertEqual(self.engine.transfer_sync_write(self.peer.session, buffer, self.peer.addresses[LAYERS], 5), 0)
        self.assertEqual(self.peer.ask("aux"), "abcde")
        self.assertEqual(self.engine.free_managed_buffer(buffer, 100000), 0)
        with self.assertLogs("hte.mooncake"):
            self.assertEqual(self.engine.free_managed_buffer(buffer, 100000), -1)
            self.assertEqual(self.engine.allocate_managed_buffer(0), 0)

    def test_refusals(self):
        own, other = self.pool.addresses[0], self.peer.addresses[0]
        write = self.engine.transfer_sync_write
        calls = [
            ("nobody", lambda: write("127.0.0.1:1", own, other, 1)),
            ("no port", lambda: write("127.0.0.1", own, other, 1)),
            ("range", lambda: write(self.peer.session, own, other + LAYER * LAYERS * 100, 1)),
            ("own range", lambda: write(self.peer.session, 4096, other, 1)),
            ("length", lambda: write(self.peer.session, own, other, 0)),
            ("sizes", lambda: self.engine.batch_transfer_sync_write(self.peer.session, [own], [other, other], [1])),
            ("twice", lambda: self.engine.register_memory(own, 4096)),
            ("cuda", lambda: self.engine.register_memory(own, 4096, "cuda:0")),
            ("unknown", lambda: self.engine.unregister_memory(4096)),
            ("probe", lambda: self.engine.send_probe("127.0.0.1:1")),
            ("dns", lambda: self.engine.send_probe("no.such.host.invalid:9")),
            ("warm", lambda: self.engine.warmup_efa_segment("127.0.0.1:1")),
            ("initialized", lambda: self.engine.initialize(HOST, "P2PHANDSHAKE", "tcp", "")),
            ("before", lambda: TransferEngine().register_memory(own, 4096)),
            ("protocol", lambda: TransferEngine().initialize(HOST, "P2PHANDSHAKE", "nvlink", "")),
            ("device", lambda: TransferEngine().initialize(HOST, "P2PHANDSHAKE", "rdma", "no_such_0")),
        ]
        for name, call in calls:
            with self.subTest(name), self.assertLogs("hte.mooncake", logging.WARNING):
                self.assertEqual(call(), -1)
        with self.assertLogs("hte.mooncake"):
            self.assertEqual(self.engine.batch_transfer_async_write("127.0.0.1:1", [own], [other], [1]), 0)
            self.assertEqual(self.engine.transfer_submit_write("127.0.0.1:1", own, other, 1), 0)
            self.assertEqual(self.engine.get_first_buffer_address("127.0.0.1:1"), 0)
        for call in (lambda: write(self.peer.session, -1, other, 1), lambda: write(self.peer.session, "a", other, 1)):
            with self.assertRaises((TypeError, OverflowError)):  # as a binding in C++ does
                call()
        with self.assertRaises(NotImplementedError):
            self.engine.get_engine()
        self.assertEqual(self.engine.warmup_efa_segment(self.peer.session), 0)

    def test_arrays(self):
        """What connectors compute with numpy arrives without a list."""
        try:
            import numpy
        except ImportError:
            self.skipTest("there is no numpy")
        pairs = [(i, i + 1) for i in range(9)]
        self.fill(pairs)
        arrays = [numpy.array(each, dtype=dtype) for each, dtype in zip(self.blocks(pairs), ("u8", "i8", "i4"))]
        self.assertEqual(self.engine.batch_transfer_sync_write(self.peer.session, *arrays), 0)
        self.assert_arrived(pairs)


class Alone(unittest.TestCase):
    def test_names(self):
        for name in ("127.0.0.1:12345", "127.0.0.1:12345", "127.0.0.1"):
            engine = TransferEngine()
            self.assertEqual(engine.initialize(name, "P2PHANDSHAKE", "tcp", ""), 0)
            self.assertNotIn(engine.get_rpc_port(), (0, 12345))
            self.addCleanup(lambda: engine)  # keeps it

    def test_topology(self):
        self.assertTrue(all(len(lists) == 2 for lists in json.loads(TransferEngine().get_local_topology()).values()))
        engine = TransferEngine()
        self.assertEqual(engine.initialize(HOST, "P2PHANDSHAKE", "tcp", "ignored"), 0)
        self.assertIn("cpu:0", json.loads(engine.get_local_topology("mlx5_0")))

    def test_forced(self):
        with unittest.mock.patch.dict(os.environ, MC_FORCE_TCP="1", MC_TRANSFER_TIMEOUT="1"):
            engine = TransferEngine()
            self.assertEqual(engine._patience, 5)
            self.assertEqual(engine.initialize(HOST, "P2PHANDSHAKE", "rdma", "ignored"), 0)

    def test_devices(self):
        from hte import mooncake
        with unittest.mock.patch("os.path.isdir", lambda path: path.startswith("/sys/class/infiniband/mlx")):
            self.assertEqual(mooncake._devices("mlx5_0, mlx5_1:2,eth0"), "mlx5_0:1,mlx5_1:2,eth0")
            with unittest.mock.patch.dict(os.environ, UCX_TLS="ha_rc,self"):
                self.assertEqual(mooncake._devices("mlx5_0,mlx5_1"), "mlx5_0:1+mlx5_1:1")
        self.assertEqual([mooncake._host(name) for name in ("a", "a:1", "[::1]:1", "::1", "[::1]")],
                         ["a", "a", "[::1]", "::1", "[::1]"])

    def test_module(self):
        self.assertEqual((int(module.Read), int(module.Write)), (0, 1))
        self.assertIs(TransferEngine.TransferOpcode, TransferOpcode)
        self.assertEqual(TransferOpcode.READ, TransferOpcode.Read)
        self.assertFalse(module.SUPPORT_CUDA)


if __name__ == "__main__":
    if sys.argv[1:] == ["peer"]:
        peer_main()
    else:
        unittest.main()
