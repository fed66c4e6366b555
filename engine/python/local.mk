# SPDX-License-Identifier: BSD-3-Clause
# The Python binding of libhte and the examples: read in place, or installed by pip.

EXTRA_DIST += \
	%D%/README.md \
	%D%/build_hte.py \
	%D%/hte/__init__.py \
	%D%/hte/binding.py \
	%D%/hte/engine.py \
	%D%/hte/errors.py \
	%D%/hte/values.py \
	%D%/pyproject.toml \
	%D%/test/test_hte.py \
	%D%/test/test_python.sh

if HAVE_JANSSON
check_PROGRAMS += %D%/test/hte_layout
%C%_test_hte_layout_SOURCES  = %D%/test/hte_layout.c
%C%_test_hte_layout_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/engine/include

# A library full of sanitizer calls cannot be loaded into a plain python3.
if !HA_SANITIZED
TESTS += %D%/test/test_python.sh
endif
endif
