# SPDX-License-Identifier: BSD-3-Clause
"""Finds the text of a mutant in a source whatever its layout: blanks, line breaks and braces around single
statements may differ, so that formatting the sources makes no mutant stale."""
import re

TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\w+|[^\s\w]')


def _pattern(text, is_blind_to_braces):
    tokens = [t for t in TOKEN.findall(text) if not (is_blind_to_braces and t in "{}")]
    between = r"[\s{}]*" if is_blind_to_braces else r"\s*"
    start = r"\b" if re.match(r"\w", tokens[0]) else ""
    end = r"\b" if re.match(r"\w", tokens[-1][-1]) and re.match(r"\w", tokens[-1]) else ""
    return re.compile(start + between.join(re.escape(t) for t in tokens) + end)


def _balance(text):
    return text.count("{") - text.count("}")


def _span(source, match, old):
    """The match, made to open and close as many braces as `old` does."""
    begin, end = match.span()
    while _balance(source[begin:end]) > _balance(old):
        closing = re.compile(r"\s*\}").match(source, end)
        if closing is None:
            break
        end = closing.end()
    return begin, end


def find(source, old):
    """The places (begin, end) of `old` in `source`: as it stands, else in any layout."""
    exact = [m.span() for m in re.finditer(re.escape(old), source)]
    if exact:
        return exact
    for is_blind in (False, True):
        found = [_span(source, m, old) for m in _pattern(old, is_blind).finditer(source)]
        if found:
            return found
    return []


def replace(source, old, new):
    """`source` with its only `old` replaced, and how often `old` was there (the source is unchanged unless once)."""
    places = find(source, old)
    if len(places) != 1:
        return source, len(places)
    begin, end = places[0]
    if old[:1].isspace() and not source[begin:begin + 1].isspace():
        new = new.lstrip()
    return source[:begin] + new + source[end:], 1
