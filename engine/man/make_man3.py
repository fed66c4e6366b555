#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the pages of section 3 from hte.h: one per group of the header, and a link for each function.

    make_man3.py HTE_H FOLDER     writes them into FOLDER, and their names, one per line, into FOLDER/pages

A group begins at a comment of the form /* ---- name ---- */. What stands in the header is the reference; here it only
gets another shape. A function without a comment in front of it is an error: so the reference stays complete.
"""

import os
import re
import sys

# name of the group in the header: name of the page, its line in apropos
PAGES = {
    "errors": ("hte_errors", "what calls of libhte return, and why"),
    "engine": ("hte_engine", "create and end an engine of libhte"),
    "memory": ("hte_memory", "register memory for transfers"),
    "segments": ("hte_segment", "open the memory of other processes"),
    "requests and batches": ("hte_batch", "transfer in batches, and wait for them"),
    "lists": ("hte_list", "check requests once, and submit them often"),
    "notifications": ("hte_notify", "short texts from engine to engine"),
    "what goes on": ("hte_stats", "load, links, topology and counters of an engine"),
}

GROUP = re.compile(r"^/\* ---- ([^:\n]*?)(?::.*)? ---- \*/$", re.M)
FUNCTION = re.compile(r"^(?!typedef)[a-z].*?\b(hte_\w+)\([^;{}]*\);$", re.M | re.S)


def fail(problem):
    sys.exit("make_man3.py: " + problem)


def roff(text):
    """Text that means nothing to roff."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def comment_text(comment):
    lines = [re.sub(r"^\s*\* ?", "", line) for line in re.sub(r"^/\*\s?|\s*\*/$", "", comment).split("\n")]
    return "\n".join(lines).strip()


def items_of(body):
    """(comment or "", declaration) in the order of the header."""
    position, items = 0, []
    pattern = re.compile(r"(?P<comment>/\*.*?\*/)|(?P<code>\S.*?)(?=\n\s*\n|\n/\*|\Z)", re.S)
    comment = ""
    for match in pattern.finditer(body, position):
        if match.group("comment"):
            if comment:
                items.append((comment, ""))
            comment = match.group("comment")
        elif not match.group("code").startswith("#"):
            items.append((comment, match.group("code").rstrip()))
            comment = ""
    return items


def paragraph(comment):
    """Emphasis for error names, and a new line where one of them begins a line."""
    text = re.sub(r"^(?=(?:[A-Z]{3,}_)*[A-Z]{4,}\b)", ".br\n", roff(comment_text(comment)), flags=re.M)
    return re.sub(r"\b([A-Z][A-Z_]{3,})\b", r"\\fB\1\\fR", text)


def functions_of(items):
    found = []
    for comment, code in items:
        for match in FUNCTION.finditer(code):
            if not comment and not found:
                fail("%s() has no comment" % match.group(1))
            found.append((match.group(1), match.group(0)))
    return found


def page(name, line, items, version):
    functions = functions_of(items)
    out = [".\\\" made from hte.h by make_man3.py: change that", '.TH %s 3 "" "ucx-ha %s" "libhte"' % (name.upper(), version),
           ".SH NAME", "%s \\- %s" % (", ".join([name] + [f for f, _ in functions if f != name]), line),
           ".SH SYNOPSIS", ".nf", "#include <hte.h>", ""]
    out += [roff(code) for _, code in functions] + [".fi", "", "Link with \\-lhte (pkg\\-config hte).", ".SH DESCRIPTION"]
    for comment, code in items:
        if code:
            out += [".PP", ".nf", roff(code), ".fi"]
        if comment:
            out += [".RS 4" if code else ".PP", paragraph(comment)] + ([".RE"] if code else [])
    out += [".SH RETURN VALUE",
            "Unless described otherwise \\fBHTE_OK\\fR (0), or a negative \\fIenum hte_error\\fR: see \\fBhte_errors\\fR(3). In the text "
            "above the names of errors are written without \\fBHTE_ERR_\\fR. Outputs are set only on success.",
            ".SH CONCURRENCY", "Every function may be called from any thread; those marked \\fBBLOCKS\\fR wait, the others do not.",
            ".SH SEE ALSO", ", ".join("\\fB%s\\fR(3)" % n for n, _ in PAGES.values() if n != name) + ", \\fBhte\\fR(7)", ""]
    return "\n".join(out), [f for f, _ in functions]


def main():
    if len(sys.argv) != 3:
        fail("two arguments are expected: hte.h and a folder")
    with open(sys.argv[1], encoding="utf-8") as file:
        header = file.read()
    version = ".".join(re.search(r"VERSION_%s (\d+)" % part, header).group(1) for part in ("MAJOR", "MINOR", "PATCH"))
    groups = GROUP.split(header.split("#ifdef __cplusplus\n}")[0])
    names = groups[1::2]
    if set(names) != set(PAGES):
        fail("groups of the header and of this script differ: %s" % sorted(set(names) ^ set(PAGES)))
    os.makedirs(sys.argv[2], exist_ok=True)
    written = {}
    for group, body in zip(names, groups[2::2]):
        name, line = PAGES[group]
        written[name], functions = page(name, line, items_of(body), version)
        written.update((function, ".so man3/%s.3\n" % name) for function in functions if function != name)
    missing = set(re.findall(r"\b(hte_\w+)\(", re.sub(r"/\*.*?\*/", "", header, flags=re.S))) - set(written)
    if missing:
        fail("these functions of the header are on no page: %s" % sorted(missing))
    for name, text in written.items():
        with open(os.path.join(sys.argv[2], name + ".3"), "w", encoding="utf-8") as file:
            file.write(text)
    with open(os.path.join(sys.argv[2], "pages"), "w", encoding="utf-8") as file:
        file.write("".join(name + ".3\n" for name in sorted(written)))


if __name__ == "__main__":
    main()
