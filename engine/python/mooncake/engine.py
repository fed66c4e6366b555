# SPDX-License-Identifier: BSD-3-Clause
"""What Mooncake's mooncake.engine has, over libhte: hte.mooncake."""

from hte.mooncake import (SUPPORT_CUDA, SUPPORT_EFA, SUPPORT_HIP, SUPPORT_INTRA_NVLINK, SUPPORT_MNNVL, SUPPORT_MUSA,
                          Read, TransferEngine, TransferNotify, TransferOpcode, Write)

__all__ = ["Read", "SUPPORT_CUDA", "SUPPORT_EFA", "SUPPORT_HIP", "SUPPORT_INTRA_NVLINK", "SUPPORT_MNNVL", "SUPPORT_MUSA",
           "TransferEngine", "TransferNotify", "TransferOpcode", "Write"]
