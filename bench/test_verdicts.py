#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What failover, handshake and rto_sweep make of figures: a bad one anywhere is no success. Needs no lab."""

import argparse
import importlib.machinery
import importlib.util
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent


def load(name):
    loader = importlib.machinery.SourceFileLoader(name, str(HERE / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


class Failover(unittest.TestCase):
    def setUp(self):
        self.module = load("failover")
        self.arguments = argparse.Namespace(timeout=16, retry_count=6, no_targets=False)
        self.ratios = {kind: [0.1, 0.12, 0.9] for kind in self.module.KINDS}

    def status(self, failures=()):
        cuts = [{"kind": kind, "group": self.module.KINDS[kind][2], "outage_ms": 1, "ratio": ratio}
                for kind, ratios in self.ratios.items() for ratio in ratios]
        self.result = self.module.summary(self.arguments, cuts, {}, list(failures))
        return self.module.exit_status(self.arguments, self.result)

    def test_good(self):
        self.assertEqual(self.status(), 0)
        self.assertTrue(self.result["targets_met"])

    def test_one_kind_too_long_among_good_ones(self):
        self.ratios["port down, sender"] = [0.19, 0.1, 0.2]
        self.assertEqual(self.status(), 1)
        self.assertLessEqual(self.result["port_ratio_p50"], 0.15)
        self.assertEqual(self.result["missed"], ["port down, sender: 0.190 of the window, more than 0.15"])
        self.arguments.no_targets = True
        self.assertEqual(self.status(), 0)
        self.assertFalse(self.result["targets_met"])

    def test_silence_has_its_own_target(self):
        self.ratios["silent, receiver"] = [0.5]
        self.assertEqual(self.status(), 0)
        self.ratios["silent, receiver"] = [0.51]
        self.assertEqual(self.status(), 1)

    def test_lost_acknowledgements_have_none(self):
        self.ratios["acknowledgements only"] = [1.5]
        self.assertEqual(self.status(), 0)

    def test_a_kind_that_was_never_cut(self):
        self.ratios["loss of 100 %"] = []
        self.assertEqual(self.status(), 1)

    def test_failures_count_without_targets(self):
        self.arguments.no_targets = True
        self.assertEqual(self.status(["no failover"]), 1)


class Handshake(unittest.TestCase):
    def wrong(self, times=(100, 100, 100), **changes):
        runs = zip(("calm", "calm, single", "calm, control", "control loss"), (*times, 300))
        rows = {run: {"run": run, "connections": 10, "connected": 10, "refused": 0, "hung": 0, "p50_ms": p50}
                for run, p50 in runs}
        for run, counts in changes.items():
            rows[run.replace("_", " ")].update(zip(("connected", "refused", "hung"), counts))
        return load("handshake").wrong_with(list(rows.values()))

    def test_verdicts(self):
        self.assertEqual(self.wrong(), [])
        self.assertEqual(self.wrong(control_loss=(7, 3, 0)), [])
        self.assertEqual(self.wrong(control_loss=(0, 10, 0)), ["control loss: none connected"])
        self.assertEqual(self.wrong(control_loss=(9, 0, 1)), ["control loss: 1 of 10 hung"])
        self.assertEqual(self.wrong(calm=(9, 1, 0)), ["calm: 1 refused without any loss"])

    def test_a_standby_must_not_hold_up(self):
        self.assertEqual(self.wrong(times=(120, 100, 95)), [])
        self.assertEqual(self.wrong(times=(180, 100, 140)), [])
        self.assertEqual(self.wrong(times=(170, 100, 75)), [])
        self.assertEqual(len(self.wrong(times=(180, 100, 105))), 1)


class RtoSweep(unittest.TestCase):
    def failed(self, *points):
        result = load("rto_sweep").summary([{"valid": v, "outage_ms": o, "false": 0, "rto_ms": 1000} for v, o in points])
        return result["run"], result["failed"]

    def test_verdicts(self):
        self.assertEqual(self.failed((1, 900.0), (0, ""), (1, 800.0)), (2, 0))
        self.assertEqual(self.failed((1, ""), (1, 800.0)), (2, 1))
        self.assertEqual(self.failed((0, "")), (0, 0))


if __name__ == "__main__":
    unittest.main()
