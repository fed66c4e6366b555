# SPDX-License-Identifier: BSD-3-Clause
"""An MPI job on two made-up hosts beside the other traffic: every rank sends to every other one, and checks each byte."""

import json
import os
import re

from ha_lab import LabError


class MpiJob:
    """One ha_alltoall under mpirun, to be asked like a pair's process on h1."""

    host, label = 1, "mpi"

    def __init__(self, lab, build, library, ranks, env):
        program = build / "test/lab_tests/ha_alltoall"
        if not hasattr(lab, "card"):
            raise LabError("--mpi: with --native only")
        if not program.exists():
            raise LabError("--mpi: no ha_alltoall: built without MPI")
        self.lab, self.pid = lab, lab.share / "mpi.pid"
        words = ["mpirun", "--oversubscribe", "--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any",
                 "--mca", "pml_ucx_devices", "any", "--mca", "osc", "^ucx"]
        words += ["--allow-run-as-root"] if os.geteuid() == 0 else []
        for host in (1, 2):
            words += ([":"] if host == 2 else []) + ["-np", str(ranks // 2), "-x", f"SOFTCARD_HOST={host}"]
            words += [word for item in {**env, "LD_PRELOAD": f"{lab.card}:{library}"}.items() for word in ("-x", "=".join(item))]
            words += ["-x", "SOFTCARD_DIR", str(program), "1000000", "2048"]
        self.job = lab.spawn(1, ["/bin/bash", "-c", 'echo $$ >"$0"; exec nice -n 10 "$@"', str(self.pid), *words], {}, 86400)

    def fields(self):
        """As the processes of pairs tell; `messages` of all ranks together."""
        found = re.findall(r"^[0-9.]+ s: (\d+) rounds, (\d+) pairs, (\d+) failovers, (\d+) standbys, (\d+) ranks$",
                           self.lab.output(self.job), re.M)
        if not found:
            return {}
        rounds, pairs, failovers, standbys, ranks = map(float, found[-1])
        return {"operations": rounds * ranks * (ranks - 1), "pairs": 2 * pairs, "standbys": standbys, "failovers": failovers // 2}

    def signal(self, *names):
        steps = [f"sleep {name}" if isinstance(name, float) else f"kill -{name} $(cat {self.pid})" for name in names]
        self.lab.run(1, "; ".join(steps))

    def closed(self):
        return not self.lab.running(self.job)

    def result(self):
        """None unless the job ended well; each endpoint pair that moved is counted by both of its ends."""
        lines = [line for line in self.lab.output(self.job).splitlines() if line.startswith('{"ok"')]
        if not lines or self.lab.client.processes[self.job].poll() not in (0, 1):
            return None
        told = json.loads(lines[-1])
        return {"operations": told["messages"], "failovers": told["failovers"] // 2, "corrupt": told["wrong"]}

    def complaints(self):
        pattern = re.compile(r"WRONG|UCX +(ERROR|FATAL)|Assertion|mpirun (noticed|has exited)|MPI_ABORT")
        return [line for line in self.lab.output(self.job).splitlines() if pattern.search(line)][:5]
