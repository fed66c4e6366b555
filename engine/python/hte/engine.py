# SPDX-License-Identifier: BSD-3-Clause
"""Engine, memory, segments, batches."""

import collections
import ctypes
import json
import math
import mmap
import threading

from . import arrays, binding, values
from .binding import check, library

Buffer = collections.namedtuple("Buffer", "addr length permission location")
Notification = collections.namedtuple("Notification", "sender name text")
NicLoad = collections.namedtuple("NicLoad", "device inflight bandwidth transferred errors pauses paused "
                                            "pause_left_ms")
Link = collections.namedtuple("Link", "segment local_device remote_device peer worker connected transferred "
                                      "reconnects")
Status = collections.namedtuple("Status", "code error transferred")
BatchStatus = collections.namedtuple("BatchStatus", "code error transferred submitted finished")


def _text(string):
    """As C has it, where a NUL would end it early."""
    if string is None:
        return None
    text = str(string).encode()
    if b"\0" in text:
        raise ValueError("%r has a NUL character in it" % string)
    return text


def _port(port):
    """ctypes would cut it to 16 bits."""
    if not 0 <= port <= 65535:
        raise ValueError("port %r is not in 0..65535" % port)
    return port


def _milliseconds(timeout):
    """Seconds, None or infinity = for ever."""
    if timeout is None or timeout == math.inf:
        return -1
    if timeout != timeout:
        raise ValueError("timeout is not a number")
    if timeout < 0:
        return 0
    return int(min(timeout * 1000, 2 ** 31 - 1))


def write(segment, local, remote, length):
    """A request: `length` bytes from the local address to the remote one. Addresses are numbers."""
    return binding.Request(values.WRITE, segment.handle, local, remote, length)


def read(segment, local, remote, length):
    """A request: `length` bytes from the remote address to the local one."""
    return binding.Request(values.READ, segment.handle, local, remote, length)


class Memory:
    """Registered memory. `addr` and `len()` for requests; `view` is a memoryview of the bytes.

    The object that it was made of stays alive, and cannot be resized, until it is unregistered and forgotten.
    """

    def __init__(self, engine, owner):
        self._engine = engine
        self._owner = owner  # of the bytes
        self.view = memoryview(owner).cast("B")
        if self.view.readonly:
            raise TypeError("memory that is registered must be writable")
        if len(self.view) == 0:
            self.addr = None  # the library refuses it, with its own words
        else:
            self.addr = ctypes.addressof(ctypes.c_char.from_buffer(self.view))

    def __len__(self):
        return len(self.view)

    def unregister(self):
        self._engine.unregister(self)


class Segment:
    """Another process's memory, opened by Engine.open()."""

    def __init__(self, engine, name, handle):
        self._engine = engine
        self.name = name
        self.handle = handle

    def buffers(self):
        """Its registered buffers as of the last fetch, by address."""
        found = binding.listing(binding.Buffer, library.hte_segment_buffers, self._engine.handle, self.handle)
        return [Buffer(b.addr, b.length, b.permission, b.location.decode()) for b in found]

    def sync(self):
        """Fetches the buffers anew."""
        check(library.hte_segment_sync(self._engine.handle, self.handle))

    def warm(self, timeout=10):
        """Connects now instead of with the first request."""
        check(library.hte_segment_warm(self._engine.handle, self.handle, _milliseconds(timeout)))

    def notify(self, name, text=""):
        check(library.hte_notify_send(self._engine.handle, self.handle, _text(name), _text(text)))

    def metrics(self):
        """What goes on in its process, as text for Prometheus."""
        return binding.text(library.hte_segment_metrics, self._engine.handle, self.handle)

    def close(self):
        check(library.hte_segment_close(self._engine.handle, self.handle))

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.close()


class RequestList:
    """Requests that are checked once and submitted often. Made by Engine.prepare(); until it is released, what they
    use cannot be unregistered."""

    def __init__(self, engine, array, count):
        handle = ctypes.c_uint64()
        check(library.hte_list_prepare(engine.handle, array, count, ctypes.byref(handle)))
        self._engine = engine
        self._count = count
        self.handle = handle.value

    def __len__(self):
        return self._count

    def release(self):
        """Requests that were submitted of it go on."""
        check(library.hte_list_release(self._engine.handle, self.handle))

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.release()


class Batch:
    """Requests that are waited for together. Made by Engine.batch()."""

    def __init__(self, engine, capacity):
        handle = ctypes.c_uint64()
        check(library.hte_batch_alloc(engine.handle, capacity, ctypes.byref(handle)))
        self._engine = engine
        self.handle = handle.value

    def submit(self, requests, notify=None):
        """Adds requests of read() and write(). notify=(name, text): sent to their targets when all completed."""
        requests = list(requests)
        self._submit((binding.Request * len(requests))(*requests), len(requests), notify)

    def _submit(self, array, count, notify):
        if notify is None:
            check(library.hte_batch_submit(self._engine.handle, self.handle, array, count))
        else:
            check(library.hte_batch_submit_notify(self._engine.handle, self.handle, array, count,
                                                  _text(notify[0]), _text(notify[1])))

    def submit_list(self, requests):
        """Adds all requests of what Engine.prepare() gave."""
        check(library.hte_list_submit(self._engine.handle, self.handle, requests.handle))

    def write_many(self, segment, local, remote, lengths, notify=None):
        """Adds len(local) requests: lengths[i] bytes from address local[i] to remote[i].

        Lists, or arrays of 64-bit numbers (numpy, array.array), of which no object per request is made; lengths may
        be one number.
        """
        self._submit_many(values.WRITE, segment, local, remote, lengths, notify)

    def read_many(self, segment, local, remote, lengths, notify=None):
        """The same: from remote[i] to local[i]."""
        self._submit_many(values.READ, segment, local, remote, lengths, notify)

    def _submit_many(self, opcode, segment, local, remote, lengths, notify):
        memory, count = arrays.requests(opcode, segment.handle, local, remote, lengths)
        self._submit(arrays.first(memory), count, notify)

    def request_status(self, index):
        status = binding.Status()
        check(library.hte_request_status(self._engine.handle, self.handle, index, ctypes.byref(status)))
        return Status(status.code, status.error, status.transferred)

    def status(self):
        status = binding.BatchStatus()
        check(library.hte_batch_status(self._engine.handle, self.handle, ctypes.byref(status)))
        return BatchStatus(status.code, status.error, status.transferred, status.submitted, status.finished)

    def outcome(self, timeout=None):
        """Waits as wait() does and returns the status, whatever it is; WAITING or PENDING when the time is over."""
        status = binding.BatchStatus()
        error = library.hte_batch_wait(self._engine.handle, self.handle, _milliseconds(timeout), ctypes.byref(status))
        if error != values.ERR_TIMEOUT:
            check(error)
        return BatchStatus(status.code, status.error, status.transferred, status.submitted, status.finished)

    def wait(self, timeout=None):
        """Waits for `timeout` seconds, None or infinity = for ever. hte.Error when it is over, or when not all completed."""
        status = binding.BatchStatus()
        check(library.hte_batch_wait(self._engine.handle, self.handle, _milliseconds(timeout), ctypes.byref(status)))
        if status.code != values.COMPLETED:
            raise binding.error(status.error, "batch %s after %d bytes" % (values.STATUS_NAMES[status.code],
                                                                           status.transferred))

    def set_priority(self, priority):
        check(library.hte_batch_set_priority(self._engine.handle, self.handle, priority))

    def set_eventfd(self, eventfd):
        """1 is added to the eventfd(2) when all is final: for select, asyncio."""
        check(library.hte_batch_set_eventfd(self._engine.handle, self.handle, eventfd))

    def cancel(self):
        check(library.hte_batch_cancel(self._engine.handle, self.handle))

    def free(self):
        check(library.hte_batch_free(self._engine.handle, self.handle))

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        """Ends what is still under way; the memory is not in use any more."""
        library.hte_batch_cancel(self._engine.handle, self.handle)
        library.hte_batch_wait(self._engine.handle, self.handle, -1, None)
        self.free()


class Engine:
    """A process's part in it: its memory as a segment with a name, and its way to others.

    metadata   None or "P2PHANDSHAKE": none; or http://, https://, redis://, etcd:// with host:port
    name       of the own segment; None, "host" or "host:port" without a metadata server
    bind_host  where the handshake server listens; None: the management address
    port       of the handshake server; 0: the one in the name, or chosen
    options    as in hte.Engine.options(): threads=4, secret="...", UCX_TLS="tcp", ...
    """

    def __init__(self, metadata=None, name=None, bind_host=None, port=0, **options):
        pairs = [binding.Option(_text(key), _text(value)) for key, value in options.items()]
        array = (binding.Option * len(pairs))(*pairs)
        config = binding.Config(size=ctypes.sizeof(binding.Config), metadata=_text(metadata), name=_text(name),
                                bind_host=_text(bind_host), port=_port(port), options=array, n_options=len(pairs))
        handle = binding.EngineHandle()
        self.handle = None
        self._generation = binding.generation()
        self._closing = threading.RLock()  # a signal handler may close what its own thread is closing
        check(library.hte_create(ctypes.byref(config), ctypes.byref(handle._as_parameter_)))
        self.handle = handle
        self._memories = {}  # by address: registered memory stays alive

    @staticmethod
    def options():
        """{key: (default, help)} of all options."""
        found, entry = {}, binding.OptionHelp()
        while library.hte_option_help(len(found), ctypes.byref(entry)) == 0:
            found[entry.key.decode()] = (entry.value.decode(), entry.help.decode())
        return found

    @property
    def name(self):
        """What peers open this engine's segment by."""
        text = ctypes.create_string_buffer(values.NAME_MAX + 1)
        check(library.hte_local_name(self.handle, text, len(text)))
        return text.value.decode()

    @property
    def local(self):
        """The own memory as a segment."""
        return Segment(self, self.name, values.SEGMENT_LOCAL)

    def register(self, *objects, location=None, permission=values.GLOBAL_RW):
        """Registers writable objects that hold bytes (bytearray, mmap, array, numpy...): all or none, published once.

        Returns a Memory, or a list of them for several objects.
        """
        memories = [Memory(self, each) for each in objects]
        array = (binding.Memory * len(memories))(*[
            binding.Memory(m.addr, len(m), _text(location), permission) for m in memories])
        check(library.hte_memory_register_batch(self.handle, array, len(memories)))
        self._memories.update((m.addr, m) for m in memories)
        return memories[0] if len(memories) == 1 else memories

    def allocate(self, length, location=None, permission=values.GLOBAL_RW):
        """New memory, page aligned and zero, registered."""
        return self.register(mmap.mmap(-1, length), location=location, permission=permission)

    def unregister(self, *memories):
        array = (ctypes.c_void_p * len(memories))(*[m.addr for m in memories])
        check(library.hte_memory_unregister_batch(self.handle, array, len(memories)))
        for memory in memories:
            self._memories.pop(memory.addr, None)

    def register_addresses(self, addrs, lengths, location=None, permission=values.GLOBAL_RW):
        """Registers [addrs[i], addrs[i] + lengths[i]), all or none. The caller keeps that memory until it is
        unregistered: for who has numbers and not objects, as from torch's data_ptr()."""
        if len(addrs) != len(lengths):
            raise ValueError("%d addresses and %d lengths" % (len(addrs), len(lengths)))
        array = (binding.Memory * len(addrs))(*[binding.Memory(addr, length, _text(location), permission)
                                                for addr, length in zip(addrs, lengths)])
        check(library.hte_memory_register_batch(self.handle, array, len(addrs)))

    def unregister_addresses(self, addrs):
        array = (ctypes.c_void_p * len(addrs))(*addrs)
        check(library.hte_memory_unregister_batch(self.handle, array, len(addrs)))

    def open(self, name):
        """The segment that a peer publishes under this name."""
        handle = ctypes.c_int32()
        check(library.hte_segment_open(self.handle, _text(name), ctypes.byref(handle)))
        return Segment(self, name, handle.value)

    def batch(self, capacity=128):
        """Room for so many requests, also as `with engine.batch() as batch`."""
        return Batch(self, capacity)

    def prepare(self, requests):
        """Checks requests of read() and write(), to submit all of them often: Batch.submit_list()."""
        requests = list(requests)
        return RequestList(self, (binding.Request * len(requests))(*requests), len(requests))

    def prepare_write_many(self, segment, local, remote, lengths):
        """The same of requests as those of Batch.write_many()."""
        return self._prepare_many(values.WRITE, segment, local, remote, lengths)

    def prepare_read_many(self, segment, local, remote, lengths):
        return self._prepare_many(values.READ, segment, local, remote, lengths)

    def _prepare_many(self, opcode, segment, local, remote, lengths):
        memory, count = arrays.requests(opcode, segment.handle, local, remote, lengths)
        return RequestList(self, arrays.first(memory), count)

    def notifications(self):
        """Takes those that have arrived, oldest first."""
        array, count = ctypes.POINTER(binding.Notification)(), ctypes.c_size_t()
        check(library.hte_notify_drain(self.handle, ctypes.byref(array), ctypes.byref(count)))
        try:
            return [Notification(*(field.decode(errors="replace") for field in (n.from_, n.name, n.text)))
                    for n in array[:count.value]]
        finally:
            library.hte_notify_free(array, count)

    def nic_load(self):
        found = binding.listing(binding.NicLoad, library.hte_nic_load, self.handle)
        return [NicLoad(n.device.decode(), n.inflight, n.bandwidth, n.transferred, n.errors, n.pauses, n.state != 0,
                        n.pause_left_ms) for n in found]

    def links(self):
        found = binding.listing(binding.Link, library.hte_links, self.handle)
        return [Link(n.segment, n.local_device.decode(), n.remote_device.decode(), n.peer.decode(), n.worker,
                     n.connected != 0, n.transferred, n.reconnects) for n in found]

    def topology(self):
        """Devices near each location: {"cpu:0": [[preferred...], [available...]], ...}."""
        return json.loads(binding.text(library.hte_topology_export, self.handle))

    def metrics(self):
        """What goes on in it, as text for Prometheus."""
        return binding.text(library.hte_metrics, self.handle)

    def close(self):
        """Ends everything; waits for what is under way. Memory may be freed after it.

        Other threads may be using the engine: calls that wait, and those that begin now, raise hte.Error.
        In a child by fork nothing happens: the engine is its parent's.
        """
        if self._generation != binding.generation():
            return
        with self._closing:
            handle, self.handle = self.handle, None
            if handle is not None:
                library.hte_shutdown(handle)
                self._memories.clear()

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.close()

    def __del__(self):
        if getattr(self, "handle", None) is not None:
            self.close()
