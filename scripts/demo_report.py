#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What happened in ./demo, and whether it is good: reads its output folder, prints figures, the verdict and a line of JSON.

Files: events (asked, in force, fault; seconds since 1970), series.csv and job.json (ha_bw), job.log (with the library's
failover lines), cut.status (port states seen while a rail was cut).
"""

import csv
import json
import os
import re
import sys

FAILOVER = re.compile(r"\[(?P<time>\d+\.\d+)\] \[(?P<host>[^:\s]+).*ha_rc (\[HA-\d+\]): failover: (?P<text>endpoint .* (?P<ms>[\d.]+) ms)")
SETTLE = 0.5  # seconds after a failover that still count as "during"
CLOCKS = 0.2  # seconds that a guest's clock may be behind the lab's
LATE = 1.0    # seconds before the end of traffic: a cut then shows nothing


class Bad(Exception):
    """The reason for FAIL."""


def lines(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except FileNotFoundError:
        return []


def read_rows(path):
    """(begin, end, MB/s, messages) per interval, from the first message on; the last one is cut short and left out."""
    try:
        with open(path, newline="", encoding="ascii") as file:
            rows = [(float(r["realtime_s"]), float(r["mb_s"]), int(r["messages"])) for r in csv.DictReader(file)]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise Bad(f"{path} is not a throughput series ({error})") from None
    rows = [(a[0], b[0], a[1], a[2]) for a, b in zip(rows, rows[1:])]
    while rows and rows[0][3] == 0:
        rows.pop(0)
    if not rows:
        raise Bad("no message ever arrived")
    return rows


def read_cuts(folder, rows):
    """One dict per rail cut, with the time until the next one (or the end) and the failovers in it."""
    events = [line.split(maxsplit=2) for line in lines(f"{folder}/events")]
    cuts = [{"asked": float(asked), "in_force": float(at), "fault": fault} for asked, at, fault in events
            if fault.startswith("down")]
    late = [cut["fault"] for cut in cuts if cut["asked"] >= rows[-1][1] - LATE]
    if late:
        print(f"\nnot counted, the job was about to end: {', '.join(late)}")
    cuts = [cut for cut in cuts if cut["fault"] not in late]
    failovers = [match for match in map(FAILOVER.search, lines(f"{folder}/job.log")) if match]
    for cut, end in zip(cuts, [c["asked"] for c in cuts[1:]] + [rows[-1][1]]):
        cut["end"] = end
        cut["failovers"] = [f for f in failovers if cut["asked"] - CLOCKS <= float(f["time"]) < end]
        restored = [float(asked) for asked, _, fault in events
                    if fault == cut["fault"].replace("down", "up") and float(asked) > cut["in_force"]]
        cut["restored"] = min(restored + [end])
    return cuts, failovers


def rate(rows, begin, end):
    """Mean over the intervals that overlap [begin, end), weighted by the overlap."""
    data = weight = 0.0
    for start, stop, mb_s, _ in rows:
        overlap = min(stop, end) - max(start, begin)
        if overlap > 0:
            data += mb_s * overlap
            weight += overlap
    return round(data / weight, 3) if weight else None


def messages(rows, begin, end):
    return sum(n for start, stop, _, n in rows if start >= begin and stop <= end)


def measure(cut, begin, rows):
    last = max([float(f["time"]) for f in cut["failovers"]] + [cut["in_force"]])
    cut["bw_before"] = rate(rows, begin, cut["asked"])
    cut["bw_during"] = rate(rows, cut["asked"], last + SETTLE)
    cut["bw_after"] = rate(rows, last + SETTLE, cut["end"])
    cut["messages_while_cut"] = messages(rows, cut["in_force"], cut["restored"])


def number(value):
    return "-" if value is None else f"{value:.2f}"


def show(cuts, job, folder):
    print(f"\n{'throughput (MB/s)':<28}{'before':>10}{'during':>10}{'after':>10}   messages while the rail was cut")
    for cut in cuts:
        rail, host = cut["fault"].split()[1:3]
        print(f"  rail {rail} cut at {host:<13}{number(cut['bw_before']):>10}{number(cut['bw_during']):>10}"
              f"{number(cut['bw_after']):>10}   {cut['messages_while_cut']}")
    print("\nwhat the library said:")
    for cut in cuts:
        for failover in cut["failovers"]:
            print(f"  {failover['host']}: {failover['text']}")
    print("\nwhat its counters say:")
    for rank, totals in enumerate(job.get("ha") or []):
        text = ", ".join(f"{name} {value}" for name, value in (totals or {}).items())
        print(f"  rank {rank}: {text or 'no counters'}")
    print(f"\nverified messages: {job.get('checked')}, wrong: {job.get('errors')}; "
          f"longest pause between two of them, for whatever reason: {job.get('longest_gap_ms')} ms")
    if os.path.exists(f"{folder}/outage.png"):
        print(f"picture: {folder}/outage.png")


def check(cuts, job, ports, total):
    if not job.get("verified"):
        raise Bad(f"the data is wrong: {job.get('errors')} errors")
    if not cuts:
        raise Bad("no rail was cut while traffic ran")
    if total == 0:
        raise Bad("the library counted no failover")
    for cut in cuts:
        where = cut["fault"].split(maxsplit=1)[1]
        if cut["bw_before"] in (None, 0):
            raise Bad(f"there was no traffic before rail {where} was cut")
        if cut["messages_while_cut"] == 0:
            raise Bad(f"no message arrived while rail {where} was cut: the cut came too late, or nothing got through")
        if ports.get(where) == "ACTIVE":
            raise Bad(f"the port of rail {where} was still ACTIVE after the cut")
        if not cut["failovers"]:
            raise Bad(f"the library reported no failover after rail {where} was cut")


def report(folder, result):
    try:
        job = json.loads(lines(f"{folder}/job.json")[-1])
    except (IndexError, ValueError):
        raise Bad(f"ha_bw left no result, see {folder}/job.log") from None
    rows = read_rows(f"{folder}/series.csv")
    cuts, failovers = read_cuts(folder, rows)
    begin = rows[0][0]
    for cut in cuts:
        measure(cut, begin, rows)
        begin = cut["restored"]
    show(cuts, job, folder)
    counted = [totals.get("failovers", 0) for totals in job.get("ha") or [] if totals]
    # Both sides count the failover of a pair: not the sum, but what the one that saw most has seen.
    result.update(verified=bool(job.get("verified")), failovers=max(counted, default=0),
                  outage_ms=max((float(f["ms"]) for f in failovers), default=None),
                  bw_before=cuts[0]["bw_before"] if cuts else None, bw_after=cuts[-1]["bw_after"] if cuts else None,
                  messages=job.get("checked"), longest_gap_ms=job.get("longest_gap_ms"),
                  cuts=[{key: cut[key] for key in ("fault", "bw_before", "bw_during", "bw_after", "messages_while_cut")} |
                        {"failovers": [f["text"] for f in cut["failovers"]]} for cut in cuts],
                  ranks=job.get("ha"))
    seen = [line.split() for line in lines(f"{folder}/cut.status")]  # e.g. "a h1 1: DOWN"
    ports = {" ".join(words[:2]): words[-1] for words in seen}
    check(cuts, job, ports, result["failovers"])


def main():
    result = {"verified": False, "failovers": None, "outage_ms": None, "bw_before": None, "bw_after": None}
    try:
        report(sys.argv[1], result)
        print("PASS")
    except Bad as reason:
        print(f"FAIL: {reason}")
        result["reason"] = str(reason)
    print(json.dumps(result, separators=(",", ":")))
    return 1 if "reason" in result else 0


if __name__ == "__main__":
    sys.exit(main())
