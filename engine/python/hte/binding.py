# SPDX-License-Identifier: BSD-3-Clause
"""libhte.so by ctypes: structures and functions of hte.h, nothing else. engine/python/test compares them with the header."""

import ctypes
import ctypes.util
import os
from ctypes import POINTER, c_char, c_char_p, c_int, c_int32, c_size_t, c_uint16, c_uint32, c_uint64, c_void_p

from .errors import Error
from .values import NAME_MAX


class Option(ctypes.Structure):
    _fields_ = [("key", c_char_p), ("value", c_char_p)]


class Config(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("metadata", c_char_p), ("name", c_char_p), ("bind_host", c_char_p),
                ("port", c_uint16), ("reserved", c_uint16 * 3), ("options", POINTER(Option)), ("n_options", c_size_t)]


class OptionHelp(ctypes.Structure):
    _fields_ = [("key", c_char_p), ("value", c_char_p), ("help", c_char_p)]


class Memory(ctypes.Structure):
    _fields_ = [("addr", c_void_p), ("length", c_size_t), ("location", c_char_p), ("permission", c_int)]


class Buffer(ctypes.Structure):
    _fields_ = [("addr", c_uint64), ("length", c_uint64), ("permission", c_int), ("location", c_char * 64)]


class Request(ctypes.Structure):
    _fields_ = [("opcode", c_int32), ("target", c_int32), ("local", c_void_p), ("target_offset", c_uint64),
                ("length", c_uint64)]


class Status(ctypes.Structure):
    _fields_ = [("code", c_int32), ("error", c_int32), ("transferred", c_uint64)]


class BatchStatus(ctypes.Structure):
    _fields_ = [("code", c_int32), ("error", c_int32), ("transferred", c_uint64), ("submitted", c_uint32),
                ("finished", c_uint32)]


class Notification(ctypes.Structure):
    _fields_ = [("from_", c_char_p), ("name", c_char_p), ("text", c_char_p)]


class NicLoad(ctypes.Structure):
    _fields_ = [("device", c_char * 64), ("inflight", c_uint64), ("bandwidth", c_uint64), ("transferred", c_uint64),
                ("errors", c_uint64), ("pauses", c_uint64), ("state", c_int32), ("pause_left_ms", c_int32)]


class Link(ctypes.Structure):
    _fields_ = [("segment", c_int32), ("local_device", c_char * 64), ("remote_device", c_char * 64),
                ("peer", c_char * (NAME_MAX + 1)), ("worker", c_uint32), ("connected", c_int32),
                ("transferred", c_uint64), ("reconnects", c_uint64)]


# Names, argument types; all return int, but those below.
_FUNCTIONS = {
    "hte_create": (POINTER(Config), POINTER(c_void_p)),
    "hte_option_help": (c_uint32, POINTER(OptionHelp)),
    "hte_local_name": (c_void_p, c_char_p, c_size_t),
    "hte_memory_register_batch": (c_void_p, POINTER(Memory), c_size_t),
    "hte_memory_unregister_batch": (c_void_p, POINTER(c_void_p), c_size_t),
    "hte_segment_open": (c_void_p, c_char_p, POINTER(c_int32)),
    "hte_segment_close": (c_void_p, c_int32),
    "hte_segment_sync": (c_void_p, c_int32),
    "hte_segment_warm": (c_void_p, c_int32, c_int),
    "hte_segment_buffers": (c_void_p, c_int32, POINTER(Buffer), POINTER(c_size_t)),
    "hte_batch_alloc": (c_void_p, c_size_t, POINTER(c_uint64)),
    "hte_batch_submit": (c_void_p, c_uint64, POINTER(Request), c_size_t),
    "hte_batch_submit_notify": (c_void_p, c_uint64, POINTER(Request), c_size_t, c_char_p, c_char_p),
    "hte_list_prepare": (c_void_p, POINTER(Request), c_size_t, POINTER(c_uint64)),
    "hte_list_submit": (c_void_p, c_uint64, c_uint64),
    "hte_list_release": (c_void_p, c_uint64),
    "hte_request_status": (c_void_p, c_uint64, c_size_t, POINTER(Status)),
    "hte_batch_status": (c_void_p, c_uint64, POINTER(BatchStatus)),
    "hte_batch_wait": (c_void_p, c_uint64, c_int, POINTER(BatchStatus)),
    "hte_batch_cancel": (c_void_p, c_uint64),
    "hte_batch_free": (c_void_p, c_uint64),
    "hte_batch_set_priority": (c_void_p, c_uint64, c_int),
    "hte_batch_set_eventfd": (c_void_p, c_uint64, c_int),
    "hte_notify_send": (c_void_p, c_int32, c_char_p, c_char_p),
    "hte_notify_drain": (c_void_p, POINTER(POINTER(Notification)), POINTER(c_size_t)),
    "hte_nic_load": (c_void_p, POINTER(NicLoad), POINTER(c_size_t)),
    "hte_links": (c_void_p, POINTER(Link), POINTER(c_size_t)),
    "hte_topology_export": (c_void_p, POINTER(c_void_p)),
    "hte_metrics": (c_void_p, POINTER(c_void_p)),
    "hte_segment_metrics": (c_void_p, c_int32, POINTER(c_void_p)),
}
_OTHERS = {
    "hte_destroy": ((c_void_p,), None),
    "hte_shutdown": ((c_void_p,), None),
    "hte_notify_free": ((POINTER(Notification), c_size_t), None),
    "hte_error_string": ((c_int,), c_char_p),
    "hte_error_detail": ((), c_char_p),
    "hte_version": ((), c_char_p),
}


def _load():
    """The library that HTE_LIBRARY names, or the one that the loader finds."""
    wanted = os.environ.get("HTE_LIBRARY")
    names = [wanted] if wanted else ["libhte.so.0", ctypes.util.find_library("hte")]
    problem = None
    for name in filter(None, names):
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            problem = problem or error
    raise ImportError("libhte cannot be loaded: %s. Install it (make install, ldconfig), add its folder to "
                      "LD_LIBRARY_PATH, or set HTE_LIBRARY to the path of libhte.so.0" % problem)


def _declare(library):
    for name, arguments in _FUNCTIONS.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, c_int
    for name, (arguments, result) in _OTHERS.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, result
    return library


library = _declare(_load())
_forks = 0


def _count_fork():
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_count_fork)


def generation():
    """Another number in each child by fork. An engine stays that of the process that made it: the library refuses
    calls of others, but a lock that a thread of the parent held is, in the child, held for ever."""
    return _forks


libc = ctypes.CDLL(None)
libc.free.argtypes, libc.free.restype = (c_void_p,), None


class EngineHandle:
    """A struct hte_engine *, as an argument of the library's functions.

    Each call holds a reference to it, also between its look at the handle and its first step in the library. So the
    engine, which Engine.close() shuts down, is freed when the last call has come back, and no earlier.
    """

    def __init__(self):
        self._as_parameter_ = c_void_p()

    def __del__(self):
        library.hte_destroy(self._as_parameter_)


def error(code, detail=None):
    """The exception for an enum hte_error; its detail is that of this thread's last call unless given."""
    if detail is None:
        detail = library.hte_error_detail().decode(errors="replace")
    return Error(code, library.hte_error_string(code).decode(), detail)


def check(code):
    if code != 0:
        raise error(code)


def version():
    """Version of the library that is loaded."""
    return library.hte_version().decode()


def text(function, *arguments):
    """A text that the library made for its caller."""
    made = c_void_p()
    check(function(*arguments, ctypes.byref(made)))
    try:
        return ctypes.string_at(made.value).decode(errors="replace")
    finally:
        libc.free(made)


def listing(structure, function, *arguments):
    """All entries of a list that the library copies out: asked again until they fit."""
    room = 0
    while True:
        count = c_size_t(room)
        entries = (structure * max(room, 1))()
        check(function(*arguments, entries if room else None, ctypes.byref(count)))
        if count.value <= room:
            return entries[:count.value]
        room = count.value
