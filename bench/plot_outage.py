#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Throughput over time, from `ha_bw --csv`, as a PNG with the cuts marked.

Uses gnuplot (Debian: gnuplot-nox). Prints one JSON object: throughput before the
first cut, during the outage and after it, and how long the outage lasted.
"""

import argparse
import csv
import json
import shutil
import statistics
import subprocess
import sys

CLOCKS = {"time": "time_s", "boottime": "boottime_s", "realtime": "realtime_s"}


def fail(text):
    sys.exit(f"plot_outage: {text}")


def mark(text):
    """'12.5' or '12.5:rail a down' as (seconds, label)."""
    seconds, _, label = text.partition(":")
    try:
        return float(seconds), label or "cut"
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not SECONDS or SECONDS:LABEL") from None


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv", help="file written by ha_bw --csv")
    parser.add_argument("-o", "--output", default="outage.png", help="PNG to write (%(default)s)")
    parser.add_argument("--cut", type=mark, action="append", default=[],
                        metavar="T[:LABEL]", help="when a rail was cut; may be repeated")
    parser.add_argument("--mark", type=mark, action="append", default=[],
                        metavar="T[:LABEL]", help="another moment to mark, e.g. a rail restored")
    parser.add_argument("--clock", choices=CLOCKS, default="time",
                        help="what T counts: time since the start of the CSV, or the receiver's "
                             "CLOCK_BOOTTIME or CLOCK_REALTIME (%(default)s)")
    parser.add_argument("--title", default="MPI bandwidth over ha_rc")
    parser.add_argument("--no-plot", action="store_true", help="only the figures")
    return parser.parse_args()


def read_series(path):
    """Rows as dicts of float; a last line cut short by a killed job is left out."""
    rows = []
    try:
        with open(path, newline="", encoding="ascii") as file:
            reader = csv.DictReader(file)
            missing = {"time_s", "mb_s"} - set(reader.fieldnames or [])
            if missing:
                fail(f"{path}: no column {', '.join(sorted(missing))}; "
                     "is it a file of ha_bw --csv?")
            for row in reader:
                try:
                    rows.append({key: float(value) for key, value in row.items()})
                except (TypeError, ValueError):
                    continue
    except OSError as error:
        fail(f"{path}: {error.strerror}")
    if not rows:
        fail(f"{path}: no rows; did the job run at all?")
    return rows


def to_csv_time(marks, rows, clock):
    """Move marks to the time axis of the CSV, in order."""
    offset = rows[0][CLOCKS[clock]] - rows[0]["time_s"]
    moved = sorted((seconds - offset, label) for seconds, label in marks)
    for seconds, label in moved:
        if not rows[0]["time_s"] <= seconds <= rows[-1]["time_s"]:
            print(f"plot_outage: warning: {label} at {seconds:.3f} s is outside the series "
                  f"(0 to {rows[-1]['time_s']:.3f} s); is --clock {clock} right?",
                  file=sys.stderr)
    return moved


def mean_rate(rows):
    """Mean, not median: traffic comes in windows, so single intervals may be empty."""
    return round(statistics.fmean(row["mb_s"] for row in rows), 3) if rows else None


def figures(rows, cuts):
    """What happened around each cut.

    An outage is the run of intervals below a tenth of the rate before it that
    starts within two seconds of the cut; its length is good to one interval.
    """
    interval = rows[1]["time_s"] - rows[0]["time_s"] if len(rows) > 1 else 0.0
    ends = [seconds for seconds, _ in cuts[1:]] + [float("inf")]
    previous = 0.0
    result = []
    for (cut, label), end in zip(cuts, ends):
        before = mean_rate([r for r in rows if previous <= r["time_s"] < cut - interval])
        after_cut = [r for r in rows if cut - interval <= r["time_s"] < end - interval]
        low = (before or 0.0) * 0.1
        first = next((i for i, r in enumerate(after_cut)
                      if r["mb_s"] < low and r["time_s"] <= cut + 2.0), None)
        if first is None:
            outage, resumed = [], after_cut
        else:
            length = next((n for n, r in enumerate(after_cut[first:]) if r["mb_s"] >= low),
                          len(after_cut) - first)
            outage = after_cut[first:first + length]
            resumed = after_cut[first + length:]
        result.append({
            "cut_s": round(cut, 3), "label": label,
            "bw_before": before, "bw_during": mean_rate(outage), "bw_after": mean_rate(resumed),
            "outage_ms": round(len(outage) * interval * 1000), "resolution_ms": round(interval * 1000),
        })
        previous = resumed[0]["time_s"] if resumed else cut
    return result


def quote(text):
    return '"' + text.replace("\\", "\\\\").replace('"', "'") + '"'


def plot(arguments, rows, cuts, marks):
    if not shutil.which("gnuplot"):
        fail("gnuplot is not installed (Debian: apt-get install gnuplot-nox); "
             "--no-plot prints the figures only")
    top = max(row["mb_s"] for row in rows) * 1.15 or 1
    lines = [
        "set terminal pngcairo size 1000,420 font 'sans,10' noenhanced",
        f"set output {quote(arguments.output)}",
        f"set title {quote(arguments.title)}",
        "set xlabel 'time (s)'", "set ylabel 'throughput at the receiver (MB/s)'",
        "set grid ytics lc rgb '#dddddd'", "set border 3", "set tics nomirror", "unset key",
        f"set xrange [0:{rows[-1]['time_s']:.3f}]", f"set yrange [0:{top:.3f}]",
    ]
    colours = [(seconds, label, "#c0392b") for seconds, label in cuts]
    colours += [(seconds, label, "#27803b") for seconds, label in marks]
    for number, (seconds, label, colour) in enumerate(sorted(colours)):
        height = 0.97 - 0.06 * (number % 3)
        lines.append(f"set arrow from {seconds:.3f}, graph 0 to {seconds:.3f}, graph 1 "
                     f"nohead dt 2 lw 1.5 lc rgb '{colour}'")
        lines.append(f"set label {quote(' ' + label)} at {seconds:.3f}, graph {height:.2f} "
                     f"left tc rgb '{colour}'")
    lines.append("plot '-' using 1:2 with fillsteps fs solid 0.25 noborder lc rgb '#2c6fbb', "
                 "'-' using 1:2 with steps lw 1.5 lc rgb '#2c6fbb'")
    data = "\n".join(f"{row['time_s']:.3f} {row['mb_s']:.3f}" for row in rows) + "\ne"
    script = "\n".join(lines + [data, data]) + "\n"
    done = subprocess.run(["gnuplot"], input=script, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        fail(f"gnuplot failed: {done.stderr.strip()}")


def main():
    arguments = parse_arguments()
    rows = read_series(arguments.csv)
    cuts = to_csv_time(arguments.cut, rows, arguments.clock)
    marks = to_csv_time(arguments.mark, rows, arguments.clock)
    if not arguments.no_plot:
        plot(arguments, rows, cuts, marks)
    print(json.dumps({"plot": None if arguments.no_plot else arguments.output,
                      "bw_mean": mean_rate(rows), "cuts": figures(rows, cuts)}))


if __name__ == "__main__":
    main()
