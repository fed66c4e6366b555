# SPDX-License-Identifier: BSD-3-Clause
# The batch transfer engine: libhte.so over public UCP.

EXTRA_DIST += %D%/include/hte.h
