# SPDX-License-Identifier: BSD-3-Clause
"""Requests out of arrays of numbers, without an object of Python's for each."""

import array
import numbers
import struct

from . import binding

_WORDS = 4  # of 64 bits in a struct hte_request: opcode and target, local, target_offset, length
_INTEGERS = frozenset("QqLlNnP")


def words_of(values):
    """A memoryview of 64-bit numbers: of an array that has such (numpy, array.array) without a copy, else of a copy."""
    try:
        view = memoryview(values)
    except TypeError:
        return memoryview(array.array("Q", values))  # list, tuple, range, iterator
    if view.ndim != 1 or view.format.lstrip("@=<") in ("c", "b", "B"):
        raise TypeError("an array of addresses or lengths is one row of whole numbers, not of bytes")
    if view.format.lstrip("@=<") in _INTEGERS and view.itemsize == 8 and view.c_contiguous:
        return view.cast("B").cast("Q")
    return memoryview(array.array("Q", view.tolist()))


def requests(opcode, target, local, remote, lengths):
    """(memory of `count` requests, count). lengths: one number for all, or one for each."""
    local, remote = words_of(local), words_of(remote)
    count = len(local)
    same = isinstance(lengths, numbers.Integral)
    lengths = memoryview(array.array("Q", [lengths]) * count) if same else words_of(lengths)
    if not len(remote) == len(lengths) == count:
        raise ValueError("%d local addresses, %d remote ones and %d lengths" % (count, len(remote), len(lengths)))
    memory = bytearray(struct.pack("=iiQQQ", opcode, target, 0, 0, 0)) * count
    words = memoryview(memory).cast("Q")
    for column, values in enumerate((local, remote, lengths), 1):
        words[column::_WORDS] = values
    return memory, count


def first(memory):
    """The first of the requests, as the library takes an array of them; None when there are none."""
    return binding.Request.from_buffer(memory) if memory else None
