# SPDX-License-Identifier: BSD-3-Clause
"""Two virtual hosts with two Soft-RoCE rails, on a machine without RDMA."""


class LabError(Exception):
    """A failure which the message explains to the user; no traceback."""
