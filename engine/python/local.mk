# SPDX-License-Identifier: BSD-3-Clause
# The Python binding of libhte, and Mooncake's names over it: read in place, installed by `make install` where configure
# found Python's modules to be, or by pip.

hte_modules = \
	%D%/hte/__init__.py \
	%D%/hte/arrays.py \
	%D%/hte/binding.py \
	%D%/hte/engine.py \
	%D%/hte/errors.py \
	%D%/hte/mooncake.py \
	%D%/hte/values.py
mooncake_modules = \
	%D%/mooncake/__init__.py \
	%D%/mooncake/engine.py

EXTRA_DIST += $(hte_modules) $(mooncake_modules) \
	%D%/README.md \
	%D%/build_hte.py \
	%D%/pyproject.toml \
	%D%/test/measure_many.py \
	%D%/test/test_connectors.py \
	%D%/test/test_hte.py \
	%D%/test/test_mooncake.py \
	%D%/test/test_mooncake.sh \
	%D%/test/test_python.sh

if HAVE_PYTHON_DIR
htepythondir   = $(pythondir)/hte
htepython_DATA = $(hte_modules)
if HAVE_MOONCAKE
mooncakepythondir   = $(pythondir)/mooncake
mooncakepython_DATA = $(mooncake_modules)
endif
endif

if HAVE_JANSSON
check_PROGRAMS += %D%/test/hte_layout
%C%_test_hte_layout_SOURCES  = %D%/test/hte_layout.c
%C%_test_hte_layout_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/engine/include

# A library full of sanitizer calls cannot be loaded into a plain python3.
if !HA_SANITIZED
TESTS += %D%/test/test_python.sh %D%/test/test_mooncake.sh
endif
endif
