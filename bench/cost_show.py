# SPDX-License-Identifier: BSD-3-Clause
"""The figures of bench/cost as tables and pictures, and their places in docs/performance.md."""

import os
import shutil
import subprocess
import sys

DOCS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "docs")
DOCUMENT = os.path.join(DOCS, "performance.md")
TRANSPORTS = ("ha_rc", "rc_verbs", "bare")
COLOURS = {"ha_rc": "#2c6fbb", "rc_verbs": "#e08a1e", "bare": "#888888"}
NAMES = {
    "am_short": "AM short, 8 B", "am_bcopy": "AM bcopy, 1 KiB", "am_zcopy": "AM zcopy, 1 KiB",
    "put_short": "PUT short, 8 B", "put_bcopy": "PUT bcopy, 1 KiB", "put_zcopy": "PUT zcopy, 4 KiB",
    "get_bcopy": "GET bcopy, 1 KiB", "get_zcopy": "GET zcopy, 4 KiB", "atomic": "fetch-and-add, 8 B",
}


def cells(figures, transport, op):
    f = figures.get(transport, {}).get(op)
    return ("–",) * 3 if f is None else (f"{f['post']:.0f}", f"{f['complete']:.0f}", f"{f['post'] + f['complete']:.0f}")


def instruction_rows(figures):
    rows = ["| operation | `ha_rc`: post | completion | sum | `rc_verbs`: post | completion | sum | ratio | bare: sum |",
            "|---|---|---|---|---|---|---|---|---|"]
    for op, name in NAMES.items():
        ha, rc, bare = (cells(figures, transport, op) for transport in TRANSPORTS)
        ratio = f"{float(ha[2]) / float(rc[2]):.1f}" if "–" not in (ha[2], rc[2]) else "–"
        rows.append(f"| {name} | {ha[0]} | {ha[1]} | **{ha[2]}** | {rc[0]} | {rc[1]} | **{rc[2]}** | {ratio} | {bare[2]} |")
    for title, op, phase in (("receive of one AM short", "am_short", "receive"), ("progress, nothing to do", "idle", "progress")):
        ha, rc, bare = (figures.get(t, {}).get(op, {}).get(phase) for t in TRANSPORTS)
        ratio = f"{ha / rc:.1f}" if ha and rc else "–"
        ha, rc, bare = ("–" if x is None else f"{x:.0f}" for x in (ha, rc, bare))
        rows.append(f"| {title} | | | **{ha}** | | | **{rc}** | {ratio} | {bare} |")
    return rows


def card_rows(figures):
    rows = ["| each operation | completions: `ha_rc` | `rc_verbs` | send doorbells: `ha_rc` | `rc_verbs` | "
            "receive doorbells: `ha_rc` | `rc_verbs` |", "|---|---|---|---|---|---|---|"]
    for op, name in NAMES.items():
        pair = [figures.get(t, {}).get(op) for t in TRANSPORTS[:2]]
        row = [("–" if f is None else f"{f[key]:.3f}") for key in ("signaled", "send_doorbells", "recv_doorbells") for f in pair]
        rows.append(f"| {name} | " + " | ".join(row) + " |")
    return rows


def line_rows(figures):
    rows = ["| cache lines | post: `ha_rc` | `rc_verbs` | bare | completion: `ha_rc` | `rc_verbs` | bare | "
            "receive: `ha_rc` | `rc_verbs` | bare |", "|---|---|---|---|---|---|---|---|---|---|"]
    for op, name in NAMES.items():
        row = []
        for phase in ("post_lines", "complete_lines", "receive_lines"):
            for transport in TRANSPORTS:
                count = figures.get(transport, {}).get(op, {}).get(phase)
                is_told = count is not None and (phase != "receive_lines" or op.startswith("am_"))
                row.append(f"{count:.0f}" if is_told else "–")
        rows.append(f"| {name} | " + " | ".join(row) + " |")
    return rows


def table(figures):
    return "\n".join(instruction_rows(figures) + [""] + card_rows(figures) + [""] + line_rows(figures))


def time_table(times, endpoints):
    rows = ["| endpoints | " + " | ".join(str(eps) for eps in endpoints) + " |", "|---|" + "---|" * len(endpoints)]
    for transport, figures in times.items():
        name = "bare verbs, and the card" if transport == "bare" else f"`{transport}`"
        rows.append(f"| {name} | " + " | ".join(f"{figures[str(eps)]:.0f}" for eps in endpoints) + " |")
    return "\n".join(rows)


def misses_table(misses, endpoints):
    """The library's own, of all."""
    rows = ["| endpoints | " + " | ".join(str(eps) for eps in endpoints) + " |", "|---|" + "---|" * len(endpoints)]
    for transport, figures in misses.items():
        name = "bare verbs, and the card" if transport == "bare" else f"`{transport}`"
        cells = [f"{figures[str(eps)]['all']:.1f}" if transport == "bare" else
                 f"**{figures[str(eps)]['library']:.1f}** of {figures[str(eps)]['all']:.1f}" for eps in endpoints]
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def write_document(text, what):
    begin, end = f"<!-- {what}: begin", f"<!-- {what}: end -->"
    with open(DOCUMENT) as file:
        before, _, rest = file.read().partition(begin)
        head, _, rest = rest.partition("\n")
        after = rest.partition(end)[2]
    with open(DOCUMENT, "w") as file:
        file.write(f"{before}{begin}{head}\n{text}\n{end}{after}")


def draw(name, lines, data):
    """A picture in docs/, where there is a gnuplot; without, the old one stays."""
    if not shutil.which("gnuplot"):
        print(f"cost: docs/{name} not drawn: no gnuplot (Debian: gnuplot-nox)", file=sys.stderr)
        return
    script = ["set terminal svg size 800,330 font 'sans,12' background rgb 'white'", f"set output '{os.path.join(DOCS, name)}'",
              "set border 3", "set tics nomirror", "set grid ytics lc rgb '#dddddd'", "$data << END", *data, "END", *lines]
    subprocess.run(["gnuplot"], input="\n".join(script) + "\n", text=True, check=True)


def draw_cost(figures):
    """Instructions of asking and completion, side by side."""
    data = []
    for op, name in NAMES.items():
        sums = [figures.get(t, {}).get(op) for t in TRANSPORTS]
        data.append(f'"{name}" ' + " ".join("NaN" if f is None else f"{f['post'] + f['complete']:.1f}" for f in sums))
    bars = [f"$data using {n + 2}{':xtic(1)' if n == 0 else ''} title '{t}' lc rgb '{COLOURS[t]}'" for n, t in enumerate(TRANSPORTS)]
    draw("cost.svg", ["set style data histogram", "set style histogram clustered gap 1", "set style fill solid noborder",
                      "set ylabel 'instructions'", "set yrange [0:]", "set xtics rotate by -25", "set key top left horizontal",
                      "plot " + ", ".join(bars)], data)


def draw_times(times, endpoints):
    data = [f"{eps} " + " ".join(f"{times[t][str(eps)]}" for t in times) for eps in endpoints]
    curves = [f"$data using 1:{n + 2} with linespoints pt 7 lw 2 lc rgb '{COLOURS[t]}' title '{t}'" for n, t in enumerate(times)]
    draw("cost_time.svg", ["set logscale x 2", f"set xtics ({', '.join(str(eps) for eps in endpoints)})", "set xlabel 'endpoints'",
                           "set ylabel 'ns of processor time'", "set yrange [0:]", "set key top left", "plot " + ", ".join(curves)],
         data)


def write(figures):
    write_document(table(figures), "cost")
    draw_cost(figures)


def write_times(times, endpoints):
    write_document(time_table(times, endpoints), "time")
    draw_times(times, endpoints)
