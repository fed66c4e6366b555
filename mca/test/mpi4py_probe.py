# SPDX-License-Identifier: BSD-3-Clause
"""One process of an MPI job in Python: a sum over all ranks, and the component's MPI_T variables.

With an argument, messages go around the ring of ranks before that, each of them looked at, until the file of this name
is there, or a minute is over.
"""
import ctypes
import os
import sys
import time

from mpi4py import MPI

world = MPI.COMM_WORLD
print(f"rank {world.rank} of {world.size}: sum {world.allreduce(world.rank + 1)}", flush=True)


def exchange(stop):
    """Rounds that were right; sizes from the smallest to beyond what is sent at once."""
    end, rounds, wrong = time.monotonic() + 60, 0, 0
    if world.rank == 0:
        print("begun", flush=True)
    while world.allreduce(time.monotonic() < end and not os.path.exists(stop), MPI.LAND):
        size = 1 << rounds % 18
        source = (world.rank - 1) % world.size
        got = world.sendrecv(bytes([(rounds + world.rank) % 256]) * size, (world.rank + 1) % world.size, rounds % 100,
                             None, source, rounds % 100)
        wrong += got != bytes([(rounds + source) % 256]) * size
        rounds += 1
    print(f"rank {world.rank}: wrong {wrong}", flush=True)


if len(sys.argv) > 1:
    exchange(sys.argv[1])

# mpi4py 3 has no MPI_T. Python loaded libmpi with RTLD_LOCAL: this is the same copy.
libmpi = ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_LOCAL)
count, name = ctypes.c_int(), ctypes.create_string_buffer(256)
libmpi.MPI_T_init_thread(0, ctypes.byref(ctypes.c_int()))
libmpi.MPI_T_pvar_get_num(ctypes.byref(count))
for index in range(count.value):
    length = ctypes.c_int(len(name))
    rest = [ctypes.byref(ctypes.c_int()) for _ in range(2)]
    handles = [ctypes.byref(ctypes.c_void_p()) for _ in range(2)]
    tail = [ctypes.byref(ctypes.c_int()) for _ in range(4)]
    if libmpi.MPI_T_pvar_get_info(index, name, ctypes.byref(length), *rest, *handles, None, None, *tail) == 0 \
            and name.value == b"hook_ha_failovers":
        print(f"rank {world.rank} sees {name.value.decode()}", flush=True)
libmpi.MPI_T_finalize()
