# SPDX-License-Identifier: BSD-3-Clause
"""Errors of libhte as an exception."""


class Error(Exception):
    """A call of libhte failed, or a batch did not complete.

    code    a negative enum hte_error of hte.h; 0 when a batch failed without one
    detail  a sentence that names the value and the way out, or ""
    """

    def __init__(self, code, name, detail=""):
        super().__init__("%s: %s" % (name, detail) if detail else name)
        self.code = code
        self.name = name
        self.detail = detail
