# SPDX-License-Identifier: BSD-3-Clause
"""Batches of one-sided transfers between processes, over UCX: a thin binding of libhte (see hte.h, hte(7)).

    import hte

    with hte.Engine() as engine:                      # peer to peer: no metadata server
        memory = engine.allocate(1 << 20)             # registered, a memoryview of bytes
        print(engine.name)                            # "10.0.0.5:15432": give this to the peer
        peer = engine.open("10.0.0.6:15999")
        there = peer.buffers()[0].addr
        with engine.batch(1) as batch:
            batch.submit([hte.write(peer, memory.addr, there, 65536)])
            batch.wait(timeout=10)                    # raises hte.Error unless all has completed

Every function may be called from any thread; calls that wait let other Python threads run.
"""

from .binding import version
from .engine import Batch, Buffer, Engine, Memory, Notification, RequestList, Segment, read, write
from .errors import Error
from .values import (CANCELED, COMPLETED, FAILED, GLOBAL_RO, GLOBAL_RW, HIGH, INVALID, LOCAL, LOW, MEDIUM, PENDING,
                     TIMEOUT, WAITING)

__all__ = ["Batch", "Buffer", "Engine", "Error", "Memory", "Notification", "RequestList", "Segment", "read",
           "version", "write",
           "CANCELED", "COMPLETED", "FAILED", "INVALID", "PENDING", "TIMEOUT", "WAITING",
           "GLOBAL_RO", "GLOBAL_RW", "LOCAL", "HIGH", "MEDIUM", "LOW"]
__version__ = "0.1.0"
