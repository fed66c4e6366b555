# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2034,SC2154
# Debian packages that building, testing and the demo need. Sourced by ./check and ./demo;
# expects $top, the project's folder.

build_packages=(autoconf automake libtool make gcc libc6-dev pkg-config xz-utils
    libucx-dev ucx-utils libibverbs-dev libhwloc-dev
    libopenmpi-dev openmpi-bin python3
    libjansson-dev libhiredis-dev libcurl4-openssl-dev libmicrohttpd-dev libssl-dev)

# What only tests need. Debian starts the two servers as services when it installs them.
test_packages=(libcmocka-dev python3-mpi4py ccache clang shellcheck valgrind ibverbs-utils perftest redis-server etcd-server)

# What makes roots of other suites (scripts/in_suite, test/packages/try).
suite_packages=(mmdebstrap)

# What only Debian 12 has, for what need not be looked at everywhere: the layout of C.
style_packages=(clang-format-14)

# The lab names its own. It is a Python program, and a bare system has no Python yet: then
# its list is read out of the source.
lab_packages() {
    if command -v python3 >/dev/null; then
        "$top/test/lab/lab" packages
    else
        sed -n '/^PACKAGES = """/,/"""/p' "$top/test/lab/ha_lab/setup.py" |
            sed 's/^PACKAGES = //; s/\.split()//' | tr -d '"'
    fi
}

# packages_missing PACKAGE...: those of them, and of the lab's (not with HA_WITHOUT_LAB), that are not installed.
packages_missing() {
    local package packages=("$@")
    # shellcheck disable=SC2207 # package names hold no blanks
    [[ ! -x $top/test/lab/lab || -n ${HA_WITHOUT_LAB:-} ]] || packages+=($(lab_packages))
    for package in "${packages[@]}"; do
        [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
            echo "$package"
    done | sort -u
}

# packages_known PACKAGE...: those of them that this suite has.
packages_known() {
    local package
    for package in "$@"; do
        if ! command -v apt-cache >/dev/null || apt-cache show "$package" >/dev/null 2>&1; then
            echo "$package"
        fi
    done
}

# packages_announce PACKAGE...: says on one line what packages_install would install now.
packages_announce() {
    local missing
    command -v dpkg-query >/dev/null || return 0
    mapfile -t missing < <(packages_missing "$@")
    ((${#missing[@]} == 0)) || echo "packages that are missing: ${missing[*]}"
}

# packages_install PACKAGE...: installs what is missing of them; says how when it may not: to an
# ordinary user, and with HA_NO_INSTALL=1 (--no-install).
packages_install() {
    local missing
    if ! command -v dpkg-query >/dev/null; then
        echo "Not Debian: install the equivalents of: $* $(lab_packages | paste -sd' ')"
        return 0
    fi
    mapfile -t missing < <(packages_missing "$@")
    if ((${#missing[@]} == 0)); then
        echo "all packages are installed"
        return 0
    fi
    if ((EUID != 0)) || [[ -n ${HA_NO_INSTALL:-} ]]; then
        echo "Packages are missing. As root: apt-get install --no-install-recommends ${missing[*]}"
        return 1
    fi
    export DEBIAN_FRONTEND=noninteractive
    apt-get update
    apt-get install -y --no-install-recommends "${missing[@]}"
}
