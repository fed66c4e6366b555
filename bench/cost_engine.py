# SPDX-License-Identifier: BSD-3-Clause
"""Instructions of libhte per request of 4 KiB, batches of 128, for bench/cost.

Counted is what libhte executes itself, in all its threads, and what it has libc do for it: locks,
allocation, conditions. Left out are copying, system calls, and UCX with all that it calls. The target
is another process, not counted; one thread submits, one moves.

`apart`: no request continues another. `prepared`: the same, as a list that is prepared once.
`neighbours`: each continues the one before it.
"""

import collections
import os
import subprocess
import sys

WAYS = {"near": "same host", "mapped": "same host, `hte_memory_alloc()`", "letters": "messages over tcp, initiator"}
SHAPES = ("apart", "prepared", "neighbours")
# By messages the thread wakes for what comes in, when it comes, and looks at more or less at a time.
GROWTH = {"near": 1.02, "mapped": 1.02, "letters": 1.10}
SLACK = 4.0  # instructions: how often a waiting thread wakes differs a little
LEFT_OUT = ("mem", "__mem", "syscall", "process_vm_", "poll", "ppoll", "read", "write", "nanosleep", "clock_")


def is_hte(obj):
    return os.path.basename(obj).startswith("libhte.so")


def is_libc(obj):
    return os.path.basename(obj).startswith(("libc.so", "libc-2", "libpthread", "ld-linux", "ld-2"))


def read_profile(path):
    """Instructions of each function of libhte, and of what it calls in libc, as "function > callee"."""
    cost = collections.Counter()
    obj = callee_obj = fn = callee = None
    is_call = False
    with open(path) as file:
        for line in file:
            key, _, value = line.rstrip("\n").partition("=")
            if key == "ob":
                obj = value
            elif key == "fn":
                fn, callee_obj = value, None
            elif key == "cob":
                callee_obj = value
            elif key == "cfn":
                callee = value
            elif key == "calls":
                is_call = True
            elif line[:1].isdigit() or line[:1] in "+-*":
                count = int(line.split()[1])
                if is_hte(obj) and not is_call:
                    cost[fn] += count
                elif is_hte(obj) and is_libc(callee_obj or obj) and not callee.startswith(LEFT_OUT):
                    cost[f"{fn} > {callee}"] += count
                if is_call:
                    is_call, callee_obj = False, None
    return cost


def measure(build, library, folder, way, shape):
    """(instructions per request, functions behind it, requests)"""
    folder = os.path.join(folder, f"engine.{way}.{shape}")
    os.makedirs(folder, exist_ok=True)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("UCX_", "HTE_"))}
    env.update(LD_LIBRARY_PATH=library, LD_BIND_NOW="1", UCX_LOG_LEVEL="error", UCX_WARN_UNUSED_ENV_VARS="n")
    command = ["valgrind", "--tool=callgrind", "-q", "--compress-strings=no", "--compress-pos=no",
               f"--callgrind-out-file={os.path.join(folder, 'out')}",
               os.path.join(build, "bench", "cost_engine"), way, shape]
    done = subprocess.run(command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit(f"cost: {' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    requests = int(done.stdout.split()[-1])
    cost = read_profile(os.path.join(folder, "out.1"))
    return round(sum(cost.values()) / requests, 1), cost, requests


def measure_all(build, library, folder, pool):
    """{way: {shape: figure}}, and {way.shape: (functions, requests)}"""
    jobs = {(way, shape): pool.submit(measure, build, library, folder, way, shape) for way in WAYS for shape in SHAPES}
    figures, functions = collections.defaultdict(dict), {}
    for (way, shape), job in jobs.items():
        figures[way][shape], cost, requests = job.result()
        functions[f"{way}.{shape}"] = (cost, requests)
    return dict(figures), functions


def check(figures, expected):
    """Lines about what has grown."""
    wrong = []
    for way, shapes in expected.items():
        for shape, before in shapes.items():
            now = figures[way][shape]
            if now > max(before * GROWTH[way], before + SLACK):
                wrong.append(f"engine {way} {shape}: {now} instead of {before}")
    return wrong


def table(figures):
    rows = ["| libhte, 4 KiB WRITE, batch 128 | " + " | ".join(SHAPES) + " |", "|---" * (1 + len(SHAPES)) + "|"]
    rows += [f"| {name} | " + " | ".join(f"{figures[way][shape]:.0f}" for shape in SHAPES) + " |"
             for way, name in WAYS.items()]
    return "\n".join(rows)
