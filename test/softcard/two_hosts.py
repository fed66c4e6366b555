# SPDX-License-Identifier: BSD-3-Clause
"""Two programs on two made-up hosts, over software cards: what run_bad and run_rails have in common."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time


class Lost(Exception):
    """It did not go as it must; says what."""


def folder(prefix):
    """A temporary one, in memory where there is some."""
    return tempfile.TemporaryDirectory(prefix=prefix, dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)


class Pair:
    """Both programs, over a fabric of their own; h1 begins. `number`: of those that run side by side, or soon after
    each other, each has its own."""

    def __init__(self, build, folder, number, env, traffic):
        self.folder, self.tool = folder, build / "test/softcard/softcard"
        torture = build / "test/lab_tests/ha_torture"
        for needed in (self.tool, torture):
            if not needed.exists():
                sys.exit(f"{os.path.basename(sys.argv[0])}: no {needed}; make it, or give --build")
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("SOFTCARD_")}
        self.env.update(SOFTCARD_DIR=str(folder / "fabric"), UCX_TLS="ha_rc,self", UCX_WARN_UNUSED_ENV_VARS="n", **env)
        self.call("up")
        cards = f"{build}/.libs/libsoftcard.so:{build}/.libs/libuct_ha.so.0"
        port = str(20000 + os.getpid() % 10000 + number)
        self.programs = []
        for host, more in (("2", []), ("1", ["--host", "127.0.0.1", "--seconds", "600", *traffic])):
            with open(folder / f"h{host}.log", "w", encoding="utf-8") as log:
                self.programs.append(subprocess.Popen(
                    [torture, "--port", port, "--progress", folder / f"h{host}", "--stall-limit", "40", *more],
                    env=dict(self.env, SOFTCARD_HOST=host, LD_PRELOAD=cards), stdout=log, stderr=log))
            time.sleep(0.3)

    def call(self, *words):
        """What the tool says."""
        return subprocess.run([self.tool, *words], env=self.env, check=True, stdout=subprocess.PIPE, text=True).stdout

    def now(self, host="1"):
        """What the program's progress file says."""
        try:
            words = (self.folder / f"h{host}").read_text(encoding="utf-8").split()
        except OSError:
            return {}
        return {name: float(value) for name, _, value in (word.partition("=") for word in words) if value}

    def wait(self, what, condition, seconds=30):
        until = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > until:
                raise Lost(f"not within {seconds} s: {what}")
            if any(program.poll() is not None for program in self.programs):
                raise Lost(f"a program ended: {self.said()}")
            time.sleep(0.05)

    def is_redundant(self):
        return all(self.now(host).get("pairs", 0) > 0 and self.now(host)["standbys"] >= self.now(host)["pairs"] and
                   self.now(host)["operations"] > 50 for host in "12")

    def rate(self, seconds):
        """Operations a second from now on."""
        before = self.now()
        time.sleep(seconds)
        after = self.now()
        return (after["operations"] - before["operations"]) / max(after["time"] - before["time"], 0.001)

    def failovers(self):
        return int(sum(self.now(host).get("failovers", 0) for host in "12"))

    def why_moved(self):
        """The library's first words about it, or nothing."""
        lines = [line for host in "12" for line in (self.folder / f"h{host}.log").read_text(encoding="utf-8", errors="replace").splitlines()
                 if "HA-" in line and "failover:" in line]
        return f"; {lines[0][lines[0].index('failover:'):][:160]}" if lines else ""

    def said(self):
        return " | ".join((self.folder / f"h{host}.log").read_text(encoding="utf-8", errors="replace").strip()[-200:]
                          for host in "12")

    def end(self):
        """Both verify everything, and say so in their last line."""
        self.programs[1].send_signal(10)
        for host, program in zip("21", self.programs):
            try:
                status = program.wait(60)
            except subprocess.TimeoutExpired:
                raise Lost(f"h{host} does not end") from None
            text = (self.folder / f"h{host}.log").read_text(encoding="utf-8", errors="replace")
            last = next((line for line in reversed(text.splitlines()) if line.startswith("{")), "{}")
            if status != 0 or not json.loads(last).get("ok"):
                raise Lost(f"h{host} ended with {status}: {self.said()}")

    def close(self):
        for program in self.programs:
            program.kill()
            program.wait()
        subprocess.run([self.tool, "down"], env=self.env, check=False, stdout=subprocess.DEVNULL)

    def keep(self, logs, name):
        """What both have said, in folder `logs`."""
        logs.mkdir(parents=True, exist_ok=True)
        for host in "12":
            (logs / f"{name}.h{host}.log").write_bytes((self.folder / f"h{host}.log").read_bytes())
