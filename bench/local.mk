# SPDX-License-Identifier: BSD-3-Clause
# Benchmarks. Filled in by their author.
