#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""bench/budget over made-up devices: it promises just what fits, says what limits it, and tells wrong input. Needs no lab."""

import csv
import importlib.machinery
import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
UNLIMITED = 2**64 - 1

CONNECTX = {"max_qp": 262144, "max_qp_wr": 32768, "max_cqe": 4194303, "max_mr": 16777216}
SOFT = {"max_qp": 1048560, "max_qp_wr": 1048576, "max_cqe": 32767, "max_mr": 524287}
DEVICES = (
    CONNECTX,
    SOFT,
    {**SOFT, "memlock": 8 << 20},
    {**SOFT, "max_qp": 7},
    {**SOFT, "max_mr": 3},
    {**SOFT, "max_cqe": 300},
    {**SOFT, "max_qp_wr": 64},
    {"max_qp": 0, "max_qp_wr": 0, "max_cqe": 0, "max_mr": 0, "memlock": 0},
    dict.fromkeys(SOFT, UNLIMITED),
)


def load():
    loader = importlib.machinery.SourceFileLoader("budget", str(HERE / "budget"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("budget", loader))
    loader.exec_module(module)
    return module


def budget(*words):
    return subprocess.run([sys.executable, str(HERE / "budget"), *words], capture_output=True, text=True, check=False)


def of_device(device, *words):
    return budget("--device", ",".join(f"{name}={value}" for name, value in device.items()), *words)


def fits(device, tx, rx, connections):
    """Counted out: does so much of everything fit on the device?"""
    if device["max_qp_wr"] == 0 and connections > 0:
        return False
    log = 1
    while log < tx:
        log *= 2
    receives = rx + 4
    memory = connections * receives * 8192 * 2 * 2  # two lanes, and each buffer is locked for each of two rails
    return (2 * connections <= device["max_qp"] and connections <= device["max_mr"] and
            (connections == 0 or min(log, device["max_qp_wr"]) + connections * (receives + 2) <= device["max_cqe"]) and
            memory <= int(device.get("memlock", UNLIMITED)))


class Promises(unittest.TestCase):
    def test_just_what_fits(self):
        for device in DEVICES:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "budget.csv"
                done = of_device(device, "--tx", "16,100,4096", "--rx", "16,128,16384", "--csv", str(path))
                self.assertEqual(done.returncode, 0, done.stderr)
                result = json.loads(done.stdout.splitlines()[-1])
                self.assertEqual((result["points"], result["measured"], result["wrong"]), (9, 0, 0))
                with open(path, newline="", encoding="ascii") as file:
                    for row in csv.DictReader(file):
                        self.check(device, row)

    def check(self, device, row):
        tx, rx, promised = (int(row[name]) for name in ("tx_queue_len", "rx_queue_len", "promised"))
        if promised == UNLIMITED:
            self.assertEqual(set(device.values()), {UNLIMITED})
        else:
            self.assertTrue(fits(device, tx, rx, promised), (device, row))
            self.assertFalse(fits(device, tx, rx, promised + 1), (device, row))

    def test_smaller_segments_need_less_memory(self):
        device = {**SOFT, "memlock": 64 << 20}
        least = [json.loads(of_device(device, "--rx", "128", "--seg", seg).stdout.splitlines()[-1])["least_promised"]
                 for seg in ("2048", "8192")]
        self.assertEqual(least, [62, 15])

    def test_what_limits(self):
        for device, limit in ((SOFT, "max_cqe"), ({**SOFT, "max_qp": 7}, "max_qp"), ({**SOFT, "max_mr": 3}, "max_mr"),
                              ({**SOFT, "memlock": 8 << 20}, "memlock")):
            done = of_device(device, "--tx", "256", "--rx", "128")
            self.assertEqual(json.loads(done.stdout.splitlines()[-1])["limited_by"], [limit])

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot")
    def test_picture(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "budget.png"
            done = of_device(SOFT, "--plot", str(path))
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(path.read_bytes()[1:4], b"PNG")


class Verdicts(unittest.TestCase):
    def judge(self, promised, connected, refused, hung):
        module = load()
        return module.judge({"promised": promised, "asked": module.how_many(promised), "connected": connected,
                             "refused": refused, "hung": hung})

    def test_points(self):
        self.assertEqual(self.judge(100, 100, 25, 0), 1)
        self.assertEqual(self.judge(100, 125, 0, 0), 1)  # more fit than were promised
        self.assertEqual(self.judge(100, 99, 26, 0), 0)
        self.assertEqual(self.judge(100, 124, 0, 1), 0)
        self.assertEqual(self.judge(100, 100, 20, 0), 0)  # five are neither
        self.assertEqual(self.judge(5000, 256, 0, 0), 1)
        self.assertEqual(self.judge(5000, 255, 1, 0), 0)
        self.assertEqual(self.judge(0, 0, 4, 0), 1)

    def test_one_wrong_point_is_told(self):
        good = {"right": 1, "hung": 0, "beyond": 0, "promised": 9, "limited_by": "max_cqe"}
        self.assertEqual(load().summary([good, good])["wrong"], 0)
        self.assertEqual(load().summary([good, {**good, "right": 0}])["wrong"], 1)


class WrongInput(unittest.TestCase):
    def refused(self, words, *parts):
        done = budget(*words)
        self.assertEqual(done.returncode, 2)
        for part in parts:
            self.assertIn(part, done.stderr)

    def test_named(self):
        self.refused(["--tx", "256,x"], "--tx", "'x'")
        self.refused(["--rx", "8"], "--rx", "'8'", "16 to 16384")
        self.refused(["--seg", "8k"], "--seg", "'8k'")
        self.refused(["--device", "max_qb=1"], "'max_qb'", "max_qp_wr")
        self.refused(["--device", "max_qp=-1"], "max_qp='-1'")
        self.refused(["--device", "max_qp=1,max_cqe=5"], "max_qp_wr", "max_mr")
        self.refused(["--lab", "x", "--device", "max_qp=1,max_qp_wr=1,max_cqe=1,max_mr=1"], "--lab")

    def test_csv_that_cannot_be_written(self):
        self.refused(["--csv", "/nowhere/x.csv", "--device", "max_qp=1,max_qp_wr=1,max_cqe=1,max_mr=1"], "/nowhere/x.csv")


if __name__ == "__main__":
    unittest.main()
