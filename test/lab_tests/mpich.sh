# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Debian's MPICH, unpacked into $build/mpich and not installed: Open MPI is installed already, and both want /usr/bin/mpirun.
# Sourced; $top and $build are set.

# shellcheck disable=SC2154
# Each step says itself that it failed: errexit does not work where somebody asks for the status.
mpich_unpack() {
    local package slurm
    rm -rf "$build/mpich" && mkdir -p "$build/mpich" && cd "$build/mpich" || return 1
    slurm=$(apt-cache depends mpich | sed -n 's/^ *Depends: \(libslurm[0-9]*\)$/\1/p')
    apt-get -q download mpich libmpich12 libmpich-dev ${slurm:+"$slurm"} || return 1
    for package in *.deb; do
        dpkg -x "$package" root || return 1
    done
    rm -f ./*.deb && touch ready
}

mpich_folder() { dirname "$(find "$build/mpich/root/usr" -name "$1" | head -n 1)"; }

mpich_libraries() { echo "$(mpich_folder libmpich.so.12):$(mpich_folder 'libslurm.so.*')"; }

# mpich_build PROGRAM: ha_alltoall for it; else status 1, and $why when MPICH cannot be had
mpich_build() {
    if [[ ! -e $build/mpich/ready ]] && ! (mpich_unpack) >"$build/mpich.log" 2>&1; then
        why="its packages cannot be had, see $build/mpich.log"
        return 1
    fi
    gcc -O2 -w -I"$top" -I"$(mpich_folder mpi.h)" -o "$1" "$top/test/lab_tests/ha_alltoall.c" \
        -L"$(mpich_folder libmpich.so.12)" -lmpich -ldl
}
