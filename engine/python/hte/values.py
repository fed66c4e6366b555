# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of hte.h. engine/python/test compares them with the header."""

# enum hte_status_code
WAITING, PENDING, INVALID, CANCELED, COMPLETED, TIMEOUT, FAILED = range(7)

# enum hte_permission
GLOBAL_RW, GLOBAL_RO, LOCAL = range(3)

# enum hte_priority
HIGH, MEDIUM, LOW = range(3)

# enum hte_opcode
READ, WRITE = range(2)

SEGMENT_LOCAL = 0
SEGMENT_NONE = -1
NAME_MAX = 255

# enum hte_error, those that the binding itself looks at
ERR_INVALID_ARGUMENT = -1
ERR_BATCH_BUSY = -4
ERR_DEAD_PEER = -19
ERR_BAD_HANDLE = -22
ERR_TIMEOUT = -25
ERR_CANCELED = -26

STATUS_NAMES = ("WAITING", "PENDING", "INVALID", "CANCELED", "COMPLETED", "TIMEOUT", "FAILED")
