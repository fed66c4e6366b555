#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The binding against the header, and against itself over whatever UCX finds. HTE_LAYOUT = the program hte_layout."""

import array
import ctypes
import gc
import json
import mmap
import multiprocessing
import os
import select
import subprocess
import threading
import time
import tracemalloc
import unittest
import unittest.mock

import hte
from hte import binding, values

SIZE = 1 << 20

STRUCTURES = {
    "hte_option": binding.Option, "hte_config": binding.Config, "hte_option_help": binding.OptionHelp,
    "hte_memory": binding.Memory, "hte_buffer": binding.Buffer, "hte_request": binding.Request,
    "hte_status": binding.Status, "hte_batch_status": binding.BatchStatus,
    "hte_notification": binding.Notification, "hte_nic_load": binding.NicLoad, "hte_link": binding.Link}


def pattern(length, seed=1):
    return bytes((seed + i * 37 + (i >> 8)) & 255 for i in range(length))


class Header(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.layout = json.loads(subprocess.check_output([os.environ["HTE_LAYOUT"]]))

    def test_sizes_and_offsets(self):
        for name, structure in STRUCTURES.items():
            self.assertEqual(ctypes.sizeof(structure), self.layout.pop(name), name)
        for name in [name for name in self.layout if "." in name]:
            structure, field = name.split(".")
            self.assertEqual(getattr(STRUCTURES[structure], field).offset, self.layout[name], name)

    def test_values(self):
        names = [name for name in self.layout if name.startswith("HTE_")]
        self.assertGreater(len(names), 15)
        for name in names:
            short = name[4:].replace("PERM_", "").replace("PRIORITY_", "")
            self.assertEqual(getattr(values, short), self.layout[name], name)


class Two(unittest.TestCase):
    """Two engines, of which one writes to the other."""

    def setUp(self):
        self.here = hte.Engine(name="127.0.0.1")
        self.there = hte.Engine(name="127.0.0.1")
        self.addCleanup(self.there.close)
        self.addCleanup(self.here.close)
        self.memory = self.here.allocate(SIZE)
        self.target = self.there.allocate(SIZE)
        self.peer = self.here.open(self.there.name)

    def run_batch(self, *requests, notify=None):
        with self.here.batch(len(requests)) as batch:
            batch.submit(requests, notify)
            batch.wait(30)
            return batch.status()


class Ends(Two):
    def test_write_and_read(self):
        self.memory.view[:] = pattern(SIZE)
        status = self.run_batch(hte.write(self.peer, self.memory.addr, self.target.addr, SIZE))
        self.assertEqual((status.code, status.transferred, status.finished), (hte.COMPLETED, SIZE, 1))
        self.assertEqual(bytes(self.target.view), pattern(SIZE))
        self.target.view[:] = pattern(SIZE, 2)
        half = SIZE // 2
        self.run_batch(hte.read(self.peer, self.memory.addr, self.target.addr + half, half),
                       hte.read(self.peer, self.memory.addr + half, self.target.addr, half))
        self.assertEqual(bytes(self.memory.view), pattern(SIZE, 2)[half:] + pattern(SIZE, 2)[:half])

    def addresses(self, count, length):
        """Block i here and block count - 1 - i there."""
        return ([self.memory.addr + i * length for i in range(count)],
                [self.target.addr + (count - 1 - i) * length for i in range(count)])

    def test_many(self):
        """The same from lists, arrays, views of them, and what counts by itself."""
        count, length = 1000, 64
        local, remote = self.addresses(count, length)
        numbers = array.array("Q", local)
        kinds = [(local, remote, [length] * count), (tuple(local), iter(remote), length),
                 (numbers, array.array("q", remote), array.array("I", [length] * count)),
                 (memoryview(numbers), memoryview(array.array("L", [n for each in remote for n in (each, 0)]))[::2],
                  array.array("H", [length] * count)),
                 (range(self.memory.addr, self.memory.addr + count * length, length), remote, length)]
        for seed, (here, there, lengths) in enumerate(kinds):
            self.memory.view[:] = pattern(SIZE, seed)
            self.target.view[:] = bytes(SIZE)
            with self.here.batch(count) as batch:
                batch.write_many(self.peer, here, there, lengths)
                batch.wait(30)
                self.assertEqual(batch.status().finished, count)
            for i in range(count):
                self.assertEqual(self.target.view[(count - 1 - i) * length:(count - i) * length],
                                 self.memory.view[i * length:(i + 1) * length])
            self.assertEqual(bytes(self.target.view[count * length:]), bytes(SIZE - count * length))

    def test_read_many(self):
        self.target.view[:] = pattern(SIZE, 3)
        local, remote = self.addresses(16, SIZE // 16)
        with self.here.batch(16) as batch:
            batch.read_many(self.peer, local, remote, SIZE // 16, notify=("got", "16"))
            self.assertEqual(batch.outcome(30).code, hte.COMPLETED)
        for i in range(16):
            part = SIZE // 16
            self.assertEqual(self.memory.view[i * part:(i + 1) * part],
                             self.target.view[(15 - i) * part:(16 - i) * part])
        deadline = time.monotonic() + 30
        while not (found := self.there.notifications()) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual([(n.name, n.text) for n in found], [("got", "16")])

    def test_many_refused(self):
        local, remote = self.addresses(4, 64)
        with self.here.batch(4) as batch:
            for bad in ((local, remote[:3], 64), (local, remote, [64] * 3)):
                with self.assertRaisesRegex(ValueError, "addresses"):
                    batch.write_many(self.peer, *bad)
            for bad in ((local, b"x" * 32, 64), (local, remote, 64.0), (local, "abcd", 64),
                        (local, memoryview(bytes(32)), 64)):
                with self.assertRaises(TypeError):
                    batch.write_many(self.peer, *bad)
            with self.assertRaises(OverflowError):
                batch.write_many(self.peer, local, remote, -1)
            self.refuses("count is 0", batch.write_many, self.peer, [], [], 64)
            self.refuses("not inside", batch.write_many, self.peer, local, [1, 2, 3, 4], 64)
            self.refuses("not registered", batch.write_many, self.peer, array.array("q", [-1] * 4), remote, 64)
            self.assertEqual(batch.status().submitted, 0)

    def test_prepared(self):
        memory = self.here.allocate(8192)
        start = memory.addr
        local = [start, start + 64]
        with self.here.prepare_write_many(self.peer, local, [self.target.addr + 8, self.target.addr], 8) as writes, \
                self.here.prepare([hte.read(self.peer, start + 4096, self.target.addr, 16)]) as reads:
            self.assertEqual((len(writes), len(reads)), (2, 1))
            for text in (b"together", b"tomorrow"):
                memory.view[0:8], memory.view[64:72] = text, text[::-1]
                with self.here.batch(2) as batch:
                    batch.submit_list(writes)
                    batch.wait(timeout=10)
                    self.refuses("room for", batch.submit_list, reads)
                with self.here.batch(1) as batch:
                    batch.submit_list(reads)
                    batch.wait(timeout=10)
                self.assertEqual(bytes(memory.view[4096:4112]), text[::-1] + text)
            self.refuses("lists", memory.unregister)
        with self.here.batch(2) as batch:
            self.refuses("was released", batch.submit_list, writes)
        self.refuses("was released", writes.release)
        self.refuses("count 0", self.here.prepare, [])
        self.refuses("not inside", self.here.prepare_read_many, self.peer, local, [1, 2], 8)
        memory.unregister()

    def test_many_without_objects(self):
        """Memory for 32 bytes per request and 8 of a column that is copied; an object of Python's has 28 and more."""
        count = 10000
        local, remote = (array.array("Q", each) for each in self.addresses(count, 64))
        lengths = array.array("Q", [64]) * count
        with self.here.batch(count) as batch:
            tracemalloc.start()
            batch.write_many(self.peer, local, remote, lengths)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            batch.wait(30)
        self.assertLess(peak, 42 * count)

    def test_addresses(self):
        memory = mmap.mmap(-1, 16384)
        start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        self.here.register_addresses([start, start + 8192], [4096, 4096], location="cpu:0")
        memory[8192:8196] = b"abcd"
        with self.here.batch(1) as batch:
            batch.write_many(self.peer, [start + 8192], [self.target.addr], 4)
            batch.wait(30)
        self.assertEqual(bytes(self.target.view[:4]), b"abcd")
        self.refuses("overlap", self.here.register_addresses, [start], [1])
        with self.assertRaises(ValueError):
            self.here.register_addresses([start], [])
        self.here.unregister_addresses([start, start + 8192])
        self.refuses("not registered", self.here.unregister_addresses, [start])

    def test_own_memory(self):
        self.memory.view[:4] = b"abcd"
        with self.here.batch(1) as batch:
            batch.submit([hte.write(self.here.local, self.memory.addr, self.memory.addr + 100, 4)])
            batch.wait(30)
        self.assertEqual(bytes(self.memory.view[100:104]), b"abcd")

    def test_buffers(self):
        self.assertEqual([(b.addr, b.length, b.permission) for b in self.peer.buffers()],
                         [(self.target.addr, SIZE, hte.GLOBAL_RW)])
        more = self.there.register(bytearray(SIZE), array.array("d", [0.0] * 512), permission=hte.GLOBAL_RO)
        self.peer.sync()
        self.assertEqual({(b.addr, b.length, b.permission) for b in self.peer.buffers()},
                         {(self.target.addr, SIZE, hte.GLOBAL_RW), (more[0].addr, SIZE, hte.GLOBAL_RO),
                          (more[1].addr, 4096, hte.GLOBAL_RO)})
        self.there.unregister(*more)
        self.peer.sync()
        self.assertEqual(len(self.peer.buffers()), 1)
        self.assertEqual([b.addr for b in self.here.local.buffers()], [self.memory.addr])

    def test_notifications(self):
        self.run_batch(hte.write(self.peer, self.memory.addr, self.target.addr, 100), notify=("ready", "block 7"))
        self.peer.notify("hello", "\u00fc")
        found, deadline = [], time.monotonic() + 30
        while len(found) < 2 and time.monotonic() < deadline:
            found += self.there.notifications()
            time.sleep(0.01)
        self.assertEqual({(n.sender, n.name, n.text) for n in found},
                         {(self.here.name, "ready", "block 7"), (self.here.name, "hello", "\u00fc")})

    def test_eventfd(self):
        eventfd = os.eventfd(0) if hasattr(os, "eventfd") else self.skipTest("Python without os.eventfd")
        with self.here.batch(1) as batch:
            batch.set_eventfd(eventfd)
            batch.submit([hte.write(self.peer, self.memory.addr, self.target.addr, SIZE)])
            self.assertTrue(select.select([eventfd], [], [], 30)[0])
            self.assertEqual(batch.status().code, hte.COMPLETED)
        os.close(eventfd)

    def test_looking_around(self):
        self.run_batch(hte.write(self.peer, self.memory.addr, self.target.addr, SIZE))
        self.assertEqual(sum(load.transferred for load in self.here.nic_load()), SIZE)
        self.assertEqual(sum(link.transferred for link in self.here.links()), SIZE)
        self.assertTrue(all(len(lists) == 2 for lists in self.here.topology().values()))
        own = 'hte_peer_transferred_bytes_total{pid="%d",engine="%s",peer="%s"} %d\n'
        self.assertIn(own % (os.getpid(), self.here.name, self.peer.name, SIZE), self.here.metrics())
        self.assertIn('engine="%s"} 1\n' % self.peer.name, self.peer.metrics())
        self.assertIn("secret", hte.Engine.options())
        self.assertRegex(hte.version(), r"^\d+\.\d+\.\d+$")

    def refuses(self, part, call, *arguments, **keywords):
        with self.assertRaises(hte.Error) as caught:
            call(*arguments, **keywords)
        self.assertIn(part, str(caught.exception))
        self.assertLess(caught.exception.code, 0)

    def test_refusals(self):
        batch = self.here.batch(1)
        self.refuses("zero length", self.here.register, bytearray(0))
        self.refuses("overlap", self.here.register, self.memory.view[10:20])
        with self.assertRaises((TypeError, BufferError)):
            self.here.register(b"constant")
        request = hte.write(self.peer, self.memory.addr, self.target.addr, 1)
        self.refuses("many requests", batch.submit, [request, request])
        self.refuses("not inside", batch.submit, [hte.write(self.peer, self.memory.addr, self.target.addr + SIZE, 1)])
        self.refuses("", self.here.open, "127.0.0.1:1")
        self.refuses("nonsense", hte.Engine, name="127.0.0.1", nonsense="1")
        batch.free()
        self.refuses("handle", batch.status)

    def test_values_that_c_would_cut(self):
        for port in (-1, 65536, 70000):
            with self.assertRaisesRegex(ValueError, "port %d is not in 0..65535" % port):
                hte.Engine(name="127.0.0.1", port=port)
        for call in (lambda: hte.Engine(name="127.0.0.1\0x"), lambda: hte.Engine(name="127.0.0.1", secret="x" * 16 + "\0"),
                     lambda: self.peer.notify("a\0b"), lambda: self.peer.notify("a", "b\0"),
                     lambda: self.here.open(self.there.name + "\0"),
                     lambda: self.here.register(bytearray(1), location="cpu:0\0")):
            with self.assertRaisesRegex(ValueError, "NUL"):
                call()

    def test_timeouts(self):
        with self.here.batch(4) as batch:
            for timeout in (None, float("inf"), 1e300, 5):
                batch.submit([hte.write(self.peer, self.memory.addr, self.target.addr, SIZE)])
                batch.wait(timeout)
            for timeout in (0, -1, float("-inf")):
                batch.wait(timeout)  # all is final: it only looks
            with self.assertRaisesRegex(ValueError, "not a number"):
                batch.wait(float("nan"))
        self.peer.warm(float("inf"))


class Close(unittest.TestCase):
    def setUp(self):
        self.engine = hte.Engine(name="127.0.0.1")
        self.addCleanup(self.engine.close)

    def in_thread(self, call):
        """Calls it until it raises; returns the thread and the list where the error's code will be."""
        def run():
            try:
                while True:
                    call()
            except hte.Error as error:
                codes.append(error.code)
        codes, thread = [], threading.Thread(target=run, daemon=True)
        thread.start()
        return thread, codes

    def test_call_on_its_way(self):
        """One that has seen the handle, but not yet entered the library, when close() ends the engine."""
        on_its_way, go_on, destroyed = threading.Event(), threading.Event(), []
        look, destroy = binding.library.hte_nic_load, binding.library.hte_destroy

        def late(*arguments):
            on_its_way.set()
            go_on.wait(30)
            self.assertFalse(destroyed)
            return look(*arguments)

        with unittest.mock.patch.object(binding.library, "hte_nic_load", late), \
                unittest.mock.patch.object(binding.library, "hte_destroy",
                                           lambda handle: (destroyed.append(1), destroy(handle))):
            thread, codes = self.in_thread(self.engine.nic_load)
            self.assertTrue(on_its_way.wait(30))
            self.engine.close()
            go_on.set()
            thread.join(30)
            self.assertEqual(codes, [values.ERR_CANCELED])
            self.assertTrue(destroyed)

    def test_under_calls(self):
        with hte.Engine(name="127.0.0.1") as other:
            segment = self.engine.open(other.name)
            calls = [self.in_thread(call) for call in (
                self.engine.nic_load, self.engine.notifications, self.engine.topology, segment.sync,
                lambda: segment.warm(None), lambda: segment.notify("a"), lambda: self.engine.batch(1).free())]
            time.sleep(0.05)
            self.engine.close()
            for thread, codes in calls:
                thread.join(30)
                self.assertFalse(thread.is_alive())
                self.assertIn(codes, [[values.ERR_CANCELED], [values.ERR_INVALID_ARGUMENT]])

    def test_twice_at_once(self):
        threads = [threading.Thread(target=self.engine.close) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        with self.assertRaises(hte.Error):
            self.engine.nic_load()


class Forks(Two):
    """What multiprocessing does by default on Linux, before Python 3.14."""

    def in_child(self, function):
        child = multiprocessing.get_context("fork").Process(target=function)
        child.start()
        child.join(60)
        if child.exitcode is None:
            child.kill()
        self.assertEqual(child.exitcode, 0)

    def test_child(self):
        def child():
            for call in (self.here.nic_load, self.here.batch, self.peer.sync, lambda: self.here.allocate(4096)):
                with self.assertRaisesRegex(hte.Error, "fork"):
                    call()
            self.here.close()
            with self.assertRaisesRegex(hte.Error, "fork"):  # not "engine is NULL": it is somebody's
                self.here.nic_load()
            self.__dict__.pop("peer")
            self.__dict__.pop("here")
            gc.collect()

        view = memoryview(self.target.view)
        with self.here.batch(2) as batch:
            self.memory.view[:] = pattern(SIZE, 5)
            batch.submit([hte.write(self.peer, self.memory.addr, self.target.addr, SIZE)])
            self.in_child(child)
            batch.wait(30)
        self.assertEqual(bytes(view), pattern(SIZE, 5))
        self.memory.view[:] = pattern(SIZE, 6)
        self.run_batch(hte.write(self.peer, self.memory.addr, self.target.addr, SIZE))
        self.assertEqual(bytes(view), pattern(SIZE, 6))

    def test_while_another_thread_closes(self):
        """It holds the engine's lock, and is not there in the child to give it back."""
        held, done = threading.Event(), threading.Event()

        def hold():
            with self.here._closing:
                held.set()
                done.wait(60)

        thread = threading.Thread(target=hold)
        thread.start()
        self.assertTrue(held.wait(30))
        try:
            self.in_child(self.here.close)
        finally:
            done.set()
            thread.join()


class Secrets(unittest.TestCase):
    def test_wrong_secret(self):
        secret = "x" * 32
        with hte.Engine(name="127.0.0.1", secret=secret) as guarded, hte.Engine(name="127.0.0.1") as stranger, \
                hte.Engine(name="127.0.0.1", secret=secret) as friend:
            with self.assertRaisesRegex(hte.Error, "secret"):
                stranger.open(guarded.name)
            self.assertEqual(friend.open(guarded.name).buffers(), [])


if __name__ == "__main__":
    unittest.main()
