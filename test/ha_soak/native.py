# SPDX-License-Identifier: BSD-3-Clause
"""Two made-up hosts on this machine, whose rails are software cards: as a Lab, without a guest and without root."""

import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from ha_lab import LabError

DEVICES = {"a": ("sc0",), "b": ("sc1",), "all": ("sc0", "sc1")}
# what the lab calls it: (what the card calls it, whether it strikes one host or both)
TROUBLES = {"down": "down", "carrier-off": "down", "drop-from": "mute", "acks": "noack"}


class Jobs:
    """Processes, asked for as the lab's client is."""

    def __init__(self, native):
        self.native, self.processes = native, {}

    def ask(self, _seconds, op, **words):
        if op == "status":
            jobs = {}
            for job, process in self.processes.items():
                status = process.poll()
                jobs[str(job)] = "running" if status is None else status
            return {"jobs": jobs, "shape": self.native.shape, "share": str(self.native.share)}
        if op == "kill" and words["id"] in self.processes and self.processes[words["id"]].poll() is None:
            self.processes[words["id"]].kill()
            self.processes[words["id"]].wait()
        return {}


class Native:
    """The same interface as Lab. Faults strike ports of the cards."""

    shape = "two"
    cannot = ("slow",)  # the card does not delay

    def __init__(self, build):
        self.name = "native"
        self.card, self.tool = build / ".libs/libsoftcard.so", build / "test/softcard/softcard"
        if not self.card.exists() or not self.tool.exists():
            raise LabError("no software card in this build: make")
        self.folder = Path(tempfile.mkdtemp(prefix="ha_native.", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
        self.share = self.folder / "share"
        self.share.mkdir()
        self.env = dict(os.environ, SOFTCARD_DIR=str(self.folder / "fabric"))
        self.client = Jobs(self)
        self.softcard("up")

    def softcard(self, *words):
        done = subprocess.run([str(self.tool), *words], env=self.env, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            raise LabError(f"softcard {' '.join(words)}: {done.stdout.strip()}")
        return done.stdout

    def spawn(self, host, argv, env, _timeout):
        job = len(self.client.processes) + 1
        argv = ["localhost" if word == "h2" else word for word in argv]
        argv = [f"LD_PRELOAD={self.card}:{word[11:]}" if word.startswith("LD_PRELOAD=") else word for word in argv]
        with open(self.share / f"{job}.out", "wb") as out, open(self.share / f"{job}.err", "wb") as err:
            self.client.processes[job] = subprocess.Popen(argv, env=dict(self.env, SOFTCARD_HOST=str(host), **env),
                                                          stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        return job

    def running(self, job):
        return self.client.processes[job].poll() is None

    def output(self, job):
        return "".join((self.share / f"{job}.{end}").read_text(errors="replace") for end in ("out", "err"))

    def run(self, host, script, timeout=30):
        if script == "rdma resource show":
            return "\n".join(re.findall(rf"^process \d+ host {host} .*", self.softcard("status"), re.M))
        done = subprocess.run(["/bin/bash", "-c", script], env=self.env, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, timeout=timeout, check=False)
        return done.stdout if done.returncode == 0 else ""

    def fault(self, *words):
        kind, rail = words[0], str(words[1]) if len(words) > 1 else "all"
        for device in DEVICES[rail]:
            for host in (words[2][1:],) if len(words) > 2 and str(words[2]).startswith("h") else ("1", "2"):
                port = f"h{host}/{device}"
                if kind in ("up", "carrier-on", "clear"):
                    self.softcard("fault", "clear", port)
                elif kind == "drop":
                    self.softcard("fault", "mute", port)
                elif kind == "loss":
                    self.softcard("fault", "loss", port, str(int(words[2]) * 10000))
                else:
                    self.softcard("fault", TROUBLES[kind], port)

    def bounce(self, host, rail, seconds):
        self.fault("down", rail, f"h{host}")
        time.sleep(seconds)
        self.fault("up", rail)

    def mend(self):
        self.softcard("fault", "clear")

    def down(self):
        for job in self.client.processes:
            self.client.ask(0, op="kill", id=job)
        self.softcard("down")
        shutil.rmtree(self.folder, ignore_errors=True)
