# SPDX-License-Identifier: BSD-3-Clause
"""Mooncake's package name, over libhte: only mooncake.engine. See docs/mooncake.md of ucx-ha."""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)  # other modules of this name, mooncake.store say, stay where they are
