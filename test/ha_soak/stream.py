# SPDX-License-Identifier: BSD-3-Clause
"""A stream of small verified messages from h1 to h2, and the silences that the receiver hears."""

import math
import random
import re
import time

from ha_lab import LabError

from .traffic import Process

GAP_MS = 3  # shorter silences are not noted


class BenchError(Exception):
    """Something that the user can act on."""


def percentile(values, share):
    """Of a few values: the smallest one that is not below that share of them."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


class Stream:
    """One sender on h1, one receiver on h2."""

    count = 0
    base = random.SystemRandom().randrange(9000, 20000)

    def __init__(self, lab, build, env, series=False, busy_ms=0):
        torture = str(build / "test/lab_tests/ha_torture")
        Stream.count += 1
        port, label = Stream.base + Stream.count, f"failover{Stream.count}"
        common = [torture, "--port", str(port), "--stall-limit", "60", "--quiet"]
        self.lab, self.series = lab, lab.share / f"{label}.csv"
        self.receiver = Process(lab, 2, common + ["--gaps", str(GAP_MS)] +
                                (["--series", str(self.series)] if series else []) +
                                (["--busy", str(busy_ms)] if busy_ms else []), env, label)
        self.sender = Process(lab, 1, common + ["--host", "h2", "--oneway", "--ops", "am", "--sizes", "small", "--window", "128",
                                                "--seconds", "1000000"], env, label)

    def field(self, name):
        return self.sender.fields().get(name, 0)

    def alive(self):
        jobs = self.lab.client.ask(30, op="status")["jobs"]
        return all(jobs.get(str(p.job)) == "running" for p in (self.sender, self.receiver))

    def wait(self, true, seconds, what):
        until = time.monotonic() + seconds
        while not true():
            if time.monotonic() > until:
                raise BenchError(f"{what}: not within {seconds:g} s")
            time.sleep(0.05)

    def wait_flow(self):
        """Messages arrive, and every endpoint pair has its standby."""
        begun = self.receiver.fields().get("operations", 0)
        self.wait(lambda: self.receiver.fields().get("operations", 0) > begun + 20, 60, "traffic")

    def wait_redundant(self):
        def redundant():
            ends = [p.fields() for p in (self.sender, self.receiver)]
            return all(end.get("pairs") and end["standbys"] >= end["pairs"] for end in ends)
        self.wait(redundant, 60, "a standby for every pair")

    def silences(self):
        """[(begin, end)] as the receiver's clock says."""
        found = re.findall(r"^([0-9.]+) gap ([0-9.]+)$", self.lab.output(self.receiver.job), re.M)
        return [(float(end) - float(length) / 1000, float(end)) for end, length in found]

    def verdict(self):
        """Nothing wrong with the data; ends the stream."""
        self.sender.signal("USR1")
        self.wait(lambda: not self.alive_any(), 60, "the end")
        return [p.result() for p in (self.sender, self.receiver)]

    def alive_any(self):
        jobs = self.lab.client.ask(30, op="status")["jobs"]
        return any(jobs.get(str(p.job)) == "running" for p in (self.sender, self.receiver))

    def kill(self):
        for process in (self.sender, self.receiver):
            try:
                self.lab.client.ask(30, op="kill", id=process.job)
            except LabError:
                pass


def one_rail_first(lab):
    """Every pair on rail a at first, with b behind it, so that all of it is on one rail at any time."""
    names = [name + ("1" if lab.shape == "one" else "") for name in ("rxe_a", "rxe_b")]
    if lab.shape == "one":
        return {}  # the lab says it per host
    return {"UCX_NET_DEVICES": f"{names[0]}:1", "UCX_HA_RC_RAILS": f"{names[0]}:1+{names[1]}:1"}
