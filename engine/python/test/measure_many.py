#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run by hand: processor time to build and to submit 10 000 requests from Python, with an object for each and without.

    HTE_LIBRARY=.libs/libhte.so.0 PYTHONPATH=engine/python python3 engine/python/test/measure_many.py
"""

import array
import statistics
import time

import hte

COUNT, LENGTH, ROUNDS = 10000, 64, 21


def run(engine, submit):
    """Milliseconds of the calling thread's processor time until all are submitted; the middle of the rounds."""
    times = []
    for _ in range(ROUNDS):
        with engine.batch(COUNT) as batch:
            start = time.thread_time()
            submit(batch)
            times.append((time.thread_time() - start) * 1000)
            batch.wait(60)
    return statistics.median(times)


def main():
    with hte.Engine(name="127.0.0.1") as here, hte.Engine(name="127.0.0.1") as there:
        memory, target = here.allocate(COUNT * LENGTH), there.allocate(COUNT * LENGTH)
        peer = here.open(there.name)
        local = [memory.addr + i * LENGTH for i in range(COUNT)]
        remote = [target.addr + i * LENGTH for i in range(COUNT)]
        lengths = [LENGTH] * COUNT
        arrays = [array.array("Q", each) for each in (local, remote, lengths)]
        ready = [hte.write(peer, *each) for each in zip(local, remote, lengths)]
        print("%d requests, ms of processor time to build and submit, median of %d:" % (COUNT, ROUNDS))
        print("  an object each      %6.2f" % run(here, lambda batch: batch.submit(
            [hte.write(peer, *each) for each in zip(local, remote, lengths)])))
        print("  objects made before %6.2f" % run(here, lambda batch: batch.submit(ready)))
        print("  write_many, lists   %6.2f" % run(here, lambda batch: batch.write_many(peer, local, remote, lengths)))
        print("  write_many, arrays  %6.2f" % run(here, lambda batch: batch.write_many(peer, *arrays)))


if __name__ == "__main__":
    main()
