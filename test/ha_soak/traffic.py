# SPDX-License-Identifier: BSD-3-Clause
"""The lab, and the pairs of processes whose traffic is checked."""

import json
import os
import random
import re
import subprocess
import time
from pathlib import Path

from ha_lab import LabError, client, paths

from .mpi import MpiJob

DEAD_PEER = 20  # seconds: an emulated host on a busy machine may stand still for some
SETTLE_SECONDS = 0.5  # between the standby being ready and the next cut


def find_build():
    """The build folder: HA_BUILD_DIR, here, the source tree, or where ./check builds."""
    for folder in (os.environ.get("HA_BUILD_DIR"), os.getcwd(), paths.PROJECT, paths.PROJECT / "build" / "gcc"):
        if folder and (Path(folder) / "libuct_ha.la").exists():
            return Path(folder).resolve()
    raise LabError("no build of ucx-ha here; build it, and give HA_BUILD_DIR")


class Lab:
    """One lab, by its own means rather than by a process per command."""

    def __init__(self, name, shape, build):
        self.name = name
        self.owned = self.name is None
        if self.owned:
            self.name = f"soak{os.getpid()}"
            self.boot(shape, build)
        self.client = client.Client(self.name)
        status = self.client.ask(60, op="status")
        self.shape, self.share = status["shape"], Path(status["share"])

    def boot(self, shape, build):
        command = [str(paths.SOURCE / "lab"), "up", "--name", self.name, "--shape", shape, "--share", str(build),
                   "--timeout", "180"]
        if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode != 0:
            raise LabError("the lab does not start; try: test/lab/lab up")

    def run(self, host, script, timeout=30):
        """Output of a short command, '' when it failed."""
        output = []
        request = {"argv": ["/bin/bash", "-c", script], "env": {}, "cwd": "/", "timeout": timeout, "host": host}
        code = self.client.execute(request, lambda kind, data: output.append(data) if kind == "O" else None)
        return b"".join(output).decode(errors="replace") if code == 0 else ""

    def spawn(self, host, argv, env, timeout):
        request = {"argv": argv, "env": env, "cwd": "/", "timeout": timeout, "host": host}
        return self.client.ask(30, op="spawn", **request)["id"]

    def running(self, job):
        return self.client.ask(30, op="status")["jobs"].get(str(job)) == "running"

    def output(self, job):
        jobs = paths.RunDir(self.name).jobs
        return "".join((jobs / f"{job}.{end}").read_text(errors="replace") for end in ("out", "err"))

    def fault(self, *words):
        self.client.ask(60, op="fault", words=[str(word) for word in words])

    def mend(self):
        for words in (("up", "all"), ("carrier-on", "all"), ("clear",)):
            self.fault(*words)

    def down(self):
        if self.owned:
            client.stop(self.name)
            client.forget(self.name)


class Process:
    """One side of a pair."""

    def __init__(self, lab, host, argv, env, label):
        self.lab, self.host, self.label = lab, host, label
        self.progress = lab.share / f"{label}.h{host}.progress"
        self.pid = lab.share / f"{label}.h{host}.pid"
        argv = argv + ["--progress", str(self.progress)]
        words = [f"{name}={value}" for name, value in env.items()]  # behind bash: it needs none of that
        script = ["/bin/bash", "-c", 'echo $$ >"$0"; exec nice -n 10 env "$@"', str(self.pid)]
        self.job = lab.spawn(host, script + words + argv, {}, 86400)

    def fields(self):
        try:
            words = self.progress.read_text().split()
        except OSError:
            return {}
        return {name: float(value) for name, _, value in (word.partition("=") for word in words)}

    def signal(self, *names):
        """One after the other, with pauses in seconds between them."""
        steps = [f"sleep {name}" if isinstance(name, float) else f"kill -{name} $(cat {self.pid})" for name in names]
        self.lab.run(self.host, "; ".join(steps))

    def result(self):
        lines = [line for line in self.lab.output(self.job).splitlines() if line.startswith("{")]
        return json.loads(lines[-1]) if lines else None

    def closed(self):
        return re.search(r"^[0-9.]+ closed$", self.lab.output(self.job), re.M) is not None

    def complaints(self):
        pattern = re.compile(r"WRONG|endpoint error|stuck|no progress|UCX +(ERROR|FATAL)|ha_torture:|Assertion")
        return [line for line in self.lab.output(self.job).splitlines() if pattern.search(line)][:5]


class Traffic:
    """All pairs; h1 has the clients."""

    # what differs between the pairs: client's options, server's options
    VARIANTS = (("", ""), ("--wakeup --peer-err", "--wakeup"), ("--sizes large --window 256", ""),
                ("--sizes small", "--busy 200"))

    def __init__(self, lab, arguments, build, library, plant=None):
        """plant: a fault that the first client shall make, see ha_torture."""
        torture = str(build / "test/lab_tests/ha_torture")
        env = {"LD_PRELOAD": str(library), "UCX_TLS": "ha_rc,self", "UCX_HA_RC_DEAD_PEER": f"{DEAD_PEER}s",
               "UCX_HA_RC_COOLDOWN_MAX": "200ms", "UCX_WARN_UNUSED_ENV_VARS": "n"}
        env.update(word.split("=", 1) for word in arguments.env)
        self.lab, self.processes = lab, []
        port = random.SystemRandom().randrange(7000, 9000)
        for n in range(arguments.pairs):
            client_options, server_options = (words.split() for words in self.VARIANTS[n % len(self.VARIANTS)])
            common = [torture, "--port", str(port + n), "--stall-limit", str(2 * DEAD_PEER), "--quiet", "--hold", "120"]
            dictated = ["--host", "h2", "--seed", str(arguments.seed + n), "--eps", str(arguments.eps),
                        "--seconds", "1000000"] + (["--plant", plant] if plant else []) + (
                            ["--ops", arguments.ops] if arguments.ops else [])
            self.processes.append(Process(lab, 2, common + server_options, env, f"soak{n}"))
            self.processes.append(Process(lab, 1, common + dictated + client_options, env, f"soak{n}"))
        self.jobs = [MpiJob(lab, build, library, arguments.mpi, env)] if arguments.mpi else []

    def clients(self):
        return [process for process in self.processes if process.host == 1]

    def everybody(self):
        return self.processes + self.jobs

    def total(self, field):
        return sum(process.fields().get(field, 0) for process in self.clients() + self.jobs)

    def redundant(self):
        """Every endpoint pair has its standby, on both sides, or is one that builds it when needed."""
        for process in self.everybody():
            now = process.fields()
            if not now.get("pairs") or now["standbys"] + now.get("cold", 0) < now["pairs"]:
                return False
        return True

    def wait_redundant(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self.redundant():
                return True
            time.sleep(0.1)
        return False

    def ended(self):
        """A process that is no more although nobody stopped it."""
        jobs = self.lab.client.ask(30, op="status")["jobs"]
        return next((p for p in self.everybody() if jobs.get(str(p.job)) != "running"), None)

    def close(self, seconds):
        """Ends the traffic; True when all processes have checked and closed everything in time, and wait for their end."""
        for process in self.clients() + self.jobs:
            process.signal("USR1")
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if all(process.closed() for process in self.everybody()):
                return True
            if self.ended() in self.processes:
                return False
            time.sleep(0.2)
        return False

    def leave(self, seconds):
        """After close(): the processes end. True when they did."""
        for process in self.processes:
            process.signal("USR1")
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            jobs = self.lab.client.ask(30, op="status")["jobs"]
            if all(jobs.get(str(p.job)) in (0, 1) for p in self.processes):  # 1: wrong data, counted elsewhere
                return True
            time.sleep(0.2)
        return False

    def kill(self):
        for process in self.everybody():
            try:
                self.lab.client.ask(30, op="kill", id=process.job)
            except LabError:
                pass
