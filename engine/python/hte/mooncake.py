# SPDX-License-Identifier: BSD-3-Clause
"""The names of Mooncake's Python module mooncake.engine, over hte: for programs that are written for that.

    from mooncake.engine import TransferEngine      # where the package mooncake of this project is installed

What the calls take and give back is Mooncake's: numbers for addresses, 0 for success and a negative number for failure,
whose reason goes to the logger "hte.mooncake". Both ends must be libhte. docs/mooncake.md says what is different.
"""

import ctypes
import enum
import json
import logging
import os
import threading
import time

from . import arrays, values
from .binding import library
from .engine import Engine
from .errors import Error

# Mooncake's builds for these have functions that libhte has not.
SUPPORT_CUDA = SUPPORT_EFA = SUPPORT_HIP = SUPPORT_INTRA_NVLINK = SUPPORT_MNNVL = SUPPORT_MUSA = False

PEER_TO_PEER = "P2PHANDSHAKE"
PROTOCOLS = ("rdma", "tcp", "")
GIB = 1 << 30
GRACE = 1.0  # seconds for what was canceled to end

_log = logging.getLogger("hte.mooncake")


class TransferOpcode(enum.IntEnum):
    Read = READ = values.READ
    Write = WRITE = values.WRITE


Read, Write = TransferOpcode.Read, TransferOpcode.Write


class TransferNotify:
    """A notification: name and msg."""

    def __init__(self, name="", msg=""):
        self.name = name
        self.msg = msg

    def __repr__(self):
        return "TransferNotify(%r, %r)" % (self.name, self.msg)


def _host(name):
    """Of "host", "host:port", "[v6]:port" or a bare v6 address: peer to peer the port is chosen, whatever it says."""
    if name.startswith("["):
        return name.partition("]")[0] + "]"
    return name.partition(":")[0] if name.count(":") == 1 else name


def _devices(names):
    """Option devices. What goes over ha_rc needs all of them in one connection."""
    ports = [name if ":" in name or not os.path.isdir("/sys/class/infiniband/" + name) else name + ":1"
             for name in (part.strip() for part in names.split(",")) if name]
    return ("+" if "ha_rc" in os.environ.get("UCX_TLS", "") else ",").join(ports)


def _patience():
    """Seconds for a transfer, to which comes a second per GiB."""
    try:
        return max(5, int(os.environ.get("MC_TRANSFER_TIMEOUT", "30")))
    except ValueError:
        return 5


class _Flight:
    """A batch that was submitted."""

    def __init__(self, batch, peer, lengths):
        self.batch = batch
        self.peer = peer
        self.lengths = lengths
        self.start = time.monotonic()

    def outcome(self, patience):
        """Its status at its end, or when its time is over."""
        status = self._wait_until(self.start + patience)
        if status.finished < status.submitted:
            status = self._wait_until(self.start + patience + sum(self.lengths) / GIB)
        return status

    def _wait_until(self, when):
        return self.batch.outcome(max(when - time.monotonic(), 0))


class TransferEngine:
    """As Mooncake's. Every function may be called from any thread."""

    TransferOpcode = TransferOpcode

    def __init__(self):
        self._engine = None
        self._port = 0
        self._patience = _patience()
        self._lock = threading.Lock()  # of what follows
        self._peers = {}    # name: open segment
        self._flights = {}  # number given out: _Flight
        self._left = []     # batches that were given up before they had ended
        self._managed = {}  # address: Memory

    # ---- engine ----

    def initialize(self, local_hostname, metadata_server, protocol, device_name):
        """metadata_server: "P2PHANDSHAKE", or a store's URL; without a scheme it is etcd."""
        scheme, colon, _ = metadata_server.partition("://")
        return self.initialize_ext(local_hostname, metadata_server, protocol, device_name, scheme if colon else "etcd")

    def initialize_ext(self, local_hostname, metadata_server, protocol, device_name, metadata_type):
        if self._engine is not None:
            return self._refused("initialize", "the engine was initialized before")
        if protocol not in PROTOCOLS:
            return self._refused("initialize", "protocol %r: libhte goes over UCX; \"rdma\" and \"tcp\" leave the "
                                 "choice to it (UCX_TLS)" % protocol)
        options = {"devices": _devices(device_name or "")} if protocol != "tcp" else {}
        if os.environ.get("MC_FORCE_TCP"):
            options = {"UCX_TLS": "tcp,self"}
        if os.environ.get("MC_CUSTOM_TOPO_JSON"):
            options["topology_file"] = os.environ["MC_CUSTOM_TOPO_JSON"]
        is_p2p = metadata_server == PEER_TO_PEER
        if not is_p2p and "://" not in metadata_server:
            metadata_server = "%s://%s" % (metadata_type, metadata_server)
        try:
            self._engine = Engine(metadata=metadata_server, name=_host(local_hostname) if is_p2p else local_hostname,
                                  bind_host=os.environ.get("MC_TCP_BIND_ADDRESS"), **options)
            self._port = int(self._engine.name.rpartition(":")[2]) if is_p2p else 0
        except (Error, ValueError) as error:
            return self._refused("initialize", error)
        return 0

    def get_rpc_port(self):
        """Peer to peer: peers open "host:port". With a store it is the name alone, and this is 0."""
        return self._port

    def get_local_topology(self, device_name=None):
        """JSON: devices near each location; device_name: of these, separated by commas, only."""
        if self._engine is not None:
            topology = self._engine.topology()
        else:
            with Engine(name="127.0.0.1") as engine:
                topology = engine.topology()
        if device_name:
            wanted = set(device_name.split(","))
            topology = {place: [[name for name in names if name.partition(":")[0] in wanted or name in wanted]
                                for names in lists] for place, lists in topology.items()}
        return json.dumps(topology)

    def get_engine(self):
        raise NotImplementedError("get_engine: Mooncake Store needs Mooncake's own engine, and this one is libhte's")

    get_engine_ptr = get_engine

    # ---- memory ----

    def register_memory(self, buffer_addr, capacity, location="*"):
        return self.batch_register_memory([buffer_addr], [capacity], location)

    def unregister_memory(self, buffer_addr):
        return self.batch_unregister_memory([buffer_addr])

    def batch_register_memory(self, buffer_addresses, capacities, location="*"):
        """All or none."""
        if len(buffer_addresses) == len(capacities) == 0:
            return 0
        return self._done("register_memory", lambda engine: engine.register_addresses(
            [int(addr) for addr in buffer_addresses], [int(length) for length in capacities], location))

    def batch_unregister_memory(self, buffer_addresses):
        """All or none; refused while transfers use it."""
        if len(buffer_addresses) == 0:
            return 0
        return self._done("unregister_memory",
                          lambda engine: engine.unregister_addresses([int(addr) for addr in buffer_addresses]))

    def allocate_managed_buffer(self, length):
        """The address of new registered memory, page aligned and zero; 0 on failure."""
        found = []
        if self._done("allocate_managed_buffer", lambda engine: found.append(engine.allocate(length))) != 0:
            return 0
        with self._lock:
            self._managed[found[0].addr] = found[0]
        return found[0].addr

    def free_managed_buffer(self, buffer_addr, length):
        with self._lock:
            memory = self._managed.pop(buffer_addr, None)
        if memory is None:
            return self._refused("free_managed_buffer", "0x%x was not allocated, or freed before" % buffer_addr)
        result = self._done("free_managed_buffer", lambda engine: engine.unregister(memory))
        if result != 0:
            with self._lock:
                self._managed[buffer_addr] = memory
        return result

    def write_bytes_to_buffer(self, dest_address, src_ptr, length):
        source = src_ptr.encode() if isinstance(src_ptr, str) else bytes(src_ptr)
        if not 0 <= length <= len(source):
            return self._refused("write_bytes_to_buffer", "%d bytes of %d" % (length, len(source)))
        ctypes.memmove(dest_address, source, length)
        return 0

    def read_bytes_from_buffer(self, source_address, length):
        return ctypes.string_at(source_address, length)

    def get_first_buffer_address(self, segment_name):
        """Of the registered buffer with the lowest address; 0 when there is none."""
        found = []

        def look(engine):
            segment = self._segment(engine, segment_name)
            if not segment.buffers():
                segment.sync()
            found.extend(segment.buffers()[:1])
        self._done("get_first_buffer_address", look)
        return found[0].addr if found else 0

    # ---- transfers ----

    def transfer_sync(self, target_hostname, buffer, peer_buffer_address, length, opcode, notify=None,
                      transport_hint=""):
        return self.batch_transfer_sync(target_hostname, [buffer], [peer_buffer_address], [length], opcode, notify)

    def transfer_sync_write(self, target_hostname, buffer, peer_buffer_address, length, transport_hint=""):
        return self.batch_transfer_sync(target_hostname, [buffer], [peer_buffer_address], [length], Write)

    def transfer_sync_read(self, target_hostname, buffer, peer_buffer_address, length, transport_hint=""):
        return self.batch_transfer_sync(target_hostname, [buffer], [peer_buffer_address], [length], Read)

    def batch_transfer_sync_write(self, target_hostname, buffers, peer_buffer_addresses, lengths, transport_hint=""):
        return self.batch_transfer_sync(target_hostname, buffers, peer_buffer_addresses, lengths, Write)

    def batch_transfer_sync_read(self, target_hostname, buffers, peer_buffer_addresses, lengths, transport_hint=""):
        return self.batch_transfer_sync(target_hostname, buffers, peer_buffer_addresses, lengths, Read)

    def batch_transfer_sync(self, target_hostname, buffers, peer_buffer_addresses, lengths, opcode, notify=None,
                            transport_hint=""):
        if len(buffers) == len(peer_buffer_addresses) == len(lengths) == 0:
            return 0
        flight = self._launch(target_hostname, buffers, peer_buffer_addresses, lengths, opcode, notify)
        return -1 if flight is None else self._land(flight)

    def batch_transfer_async_write(self, target_hostname, buffers, peer_buffer_addresses, lengths, transport_hint=""):
        return self.batch_transfer_async(target_hostname, buffers, peer_buffer_addresses, lengths, Write)

    def batch_transfer_async_read(self, target_hostname, buffers, peer_buffer_addresses, lengths, transport_hint=""):
        return self.batch_transfer_async(target_hostname, buffers, peer_buffer_addresses, lengths, Read)

    def batch_transfer_async(self, target_hostname, buffers, peer_buffer_addresses, lengths, opcode,
                             transport_hint=""):
        """A number for get_batch_transfer_status() or transfer_check_status(); 0 on failure."""
        flight = self._launch(target_hostname, buffers, peer_buffer_addresses, lengths, opcode, None)
        if flight is None:
            return 0
        with self._lock:
            self._flights[flight.batch.handle] = flight
        return flight.batch.handle

    def transfer_submit_write(self, target_hostname, buffer, peer_buffer_address, length, transport_hint=""):
        return self.batch_transfer_async(target_hostname, [buffer], [peer_buffer_address], [length], Write)

    def get_batch_transfer_status(self, batch_ids):
        """Waits: 0 when all have completed. With -1 the others are canceled. The numbers are void afterwards."""
        with self._lock:
            flights = [self._flights.pop(number, None) for number in batch_ids]
        result = 0
        for number, flight in zip(batch_ids, flights):
            if flight is None:
                result = self._refused("get_batch_transfer_status", "%r is no batch" % number)
            elif result == 0:
                result = self._land(flight)
            else:
                self._retire(flight.batch)
        return result

    def transfer_check_status(self, batch_id):
        """Does not wait. 1: completed, 0: under way, -1: failed, -2: timed out; the number is void after all but 0."""
        with self._lock:
            flight = self._flights.get(batch_id)
        if flight is None:
            return self._refused("transfer_check_status", "%r is no batch" % batch_id)
        try:
            status = flight.batch.status()
        except Error as error:  # another thread asked for it, too
            return self._refused("transfer_check_status", error)
        if status.finished < status.submitted:
            return 0
        with self._lock:
            is_mine = self._flights.pop(batch_id, None) is not None
        if is_mine:
            self._land(flight)
        return 1 if status.code == values.COMPLETED else -2 if status.code == values.TIMEOUT else -1

    # ---- peers ----

    def get_notifies(self):
        found = []
        self._done("get_notifies", lambda engine: found.extend(engine.notifications()))
        return [TransferNotify(each.name, each.text) for each in found]

    def send_probe(self, peer_server_name):
        """0: the peer answers."""
        def probe(engine):
            with engine.open(peer_server_name) as segment:
                segment.sync()
        return self._done("send_probe", probe)

    def warmup_efa_segment(self, segment_name):
        """Connects, whatever the transport."""
        return self._done("warmup_efa_segment", lambda engine: self._segment(engine, segment_name).warm(self._patience))

    # ---- how ----

    @staticmethod
    def _refused(call, why):
        _log.warning("%s: %s", call, why)
        return -1

    def _done(self, call, action):
        """0, or -1 and the reason in the log."""
        engine = self._engine
        if engine is None:
            return self._refused(call, "the engine is not initialized")
        try:
            action(engine)
        except (Error, OSError, ValueError) as error:
            return self._refused(call, error)
        return 0

    def _segment(self, engine, name):
        with self._lock:
            segment = self._peers.get(name)
        if segment is None:
            opened = engine.open(name)  # which takes time: not under the lock
            with self._lock:
                segment = self._peers.setdefault(name, opened)
            if segment is not opened:
                opened.close()
        return segment

    def _forget(self, name, segment):
        """The next transfer to it opens it anew."""
        with self._lock:
            mine = self._peers.get(name) is segment
            if mine:
                del self._peers[name]
        if mine:
            segment.close()

    def _launch(self, peer, buffers, addresses, lengths, opcode, notify):
        """A _Flight; None and the reason in the log."""
        flights = []

        def launch(engine):
            local, remote, sizes = (arrays.words_of(each) for each in (buffers, addresses, lengths))
            message = None if notify is None else (notify.name, notify.msg)
            self._sweep()
            try:
                batch = self._submit(engine, peer, opcode, local, remote, sizes, message)
            except Error as error:
                if error.code != values.ERR_BAD_HANDLE:
                    raise
                batch = self._submit(engine, peer, opcode, local, remote, sizes, message)  # another thread closed it
            flights.append(_Flight(batch, peer, sizes))
        self._done("transfer to %s" % peer, launch)
        return flights[0] if flights else None

    def _submit(self, engine, peer, opcode, local, remote, sizes, message):
        segment = self._segment(engine, peer)
        batch = engine.batch(max(len(local), 1))
        try:
            (batch.write_many if opcode == Write else batch.read_many)(segment, local, remote, sizes, message)
        except (Error, ValueError) as error:
            batch.free()
            if getattr(error, "code", 0) in (values.ERR_DEAD_PEER, values.ERR_BAD_HANDLE):
                self._forget(peer, segment)
            raise
        return batch

    def _land(self, flight):
        """Waits for its end. 0, or -1 and the reason in the log."""
        results = []

        def land(engine):
            status = flight.outcome(self._patience)
            self._retire(flight.batch)
            if status.code == values.COMPLETED:
                return
            if status.error == values.ERR_DEAD_PEER:
                with self._lock:
                    segment = self._peers.get(flight.peer)
                if segment is not None:
                    self._forget(flight.peer, segment)
            results.append(self._refused("transfer to " + flight.peer, "%s: %s after %d bytes of %d" % (
                values.STATUS_NAMES[status.code], library.hte_error_string(status.error).decode(), status.transferred,
                sum(flight.lengths))))
        return self._done("transfer to " + flight.peer, land) or (results[0] if results else 0)

    def _retire(self, batch):
        """End of a batch. What does not end soon is kept, and tried again with every transfer that follows."""
        try:
            batch.free()
        except Error as error:
            if error.code != values.ERR_BATCH_BUSY:
                raise
            batch.cancel()
            batch.outcome(GRACE)
            with self._lock:
                self._left.append(batch)
            self._sweep()

    def _sweep(self):
        if not self._left:
            return
        with self._lock:
            left, self._left = self._left, []
        for batch in left:
            try:
                batch.free()
            except Error as error:
                if error.code == values.ERR_BATCH_BUSY:
                    with self._lock:
                        self._left.append(batch)
