# SPDX-License-Identifier: BSD-3-Clause
"""The guests' initramfs: busybox, kernel modules in load order, the programs of guest/."""

import gzip
import lzma
import os
import re
import subprocess
from pathlib import Path

from . import LabError

BASE = ["virtio_pci", "virtio_console"]
ROOT = BASE + ["9pnet_virtio", "9p", "overlay"]
RXE = ["crc32_generic", "crc32c_generic", "crc32c_intel", "ib_core", "ib_uverbs", "rdma_rxe", "rdma_cm", "rdma_ucm"]
MODULES = {
    "probe": [],
    "two": ROOT + ["virtio_net"] + RXE + ["sch_netem"],
    "one": ROOT + RXE + ["veth", "bridge", "sch_netem", "sch_ingress", "cls_u32", "cls_matchall", "act_gact"],
}
OPTIONAL = {"crc32_generic", "crc32c_generic", "crc32c_intel"}  # built in, or absent, on some kernels


def _plain(name):
    return re.sub(r"\.ko(\.\w+)?$", "", name).replace("-", "_")


class ModuleTree:
    """The modules below an unpacked /lib/modules/VERSION."""

    def __init__(self, top):
        self.files = {_plain(p.name): p for p in Path(top).rglob("*.ko*")}
        builtin = Path(top) / "modules.builtin"
        self.builtin = set()
        if builtin.exists():
            self.builtin = {_plain(os.path.basename(line.strip())) for line in builtin.read_text().splitlines()}
        self.bodies = {}

    def body(self, name):
        """The module, uncompressed: busybox insmod knows nothing else."""
        if name not in self.bodies:
            path = self.files[name]
            data = path.read_bytes()
            if path.suffix == ".xz":
                data = lzma.decompress(data)
            elif path.suffix == ".gz":
                data = gzip.decompress(data)
            elif path.suffix == ".zst":
                data = subprocess.run(["zstd", "-dcq"], input=data, stdout=subprocess.PIPE, check=True).stdout
            self.bodies[name] = data
        return self.bodies[name]

    def order(self, wanted):
        """The wanted modules with what they depend on, in load order."""
        done = []

        def visit(name):
            if name in done or name in self.builtin:
                return
            if name not in self.files:
                if name in OPTIONAL:
                    return
                raise LabError(f"the kernel has no module '{name}', the lab needs it; choose another kernel with HA_LAB_KERNEL")
            match = re.search(rb"\0depends=([^\0]*)\0", self.body(name))
            for other in filter(None, match.group(1).decode().split(",") if match else []):
                visit(_plain(other))
            done.append(name)

        for name in wanted:
            visit(name)
        return done


class Cpio:
    """A newc archive, the format the kernel unpacks."""

    def __init__(self):
        self.parts = []
        self.inode = 0
        self.folders = set()

    def _entry(self, name, mode, data):
        self.inode += 1
        encoded = name.encode() + b"\0"
        fields = [self.inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(encoded), 0]
        head = b"070701" + b"".join(b"%08x" % f for f in fields) + encoded
        self.parts += [head, b"\0" * (-len(head) % 4), data, b"\0" * (-len(data) % 4)]

    def folder(self, name):
        if name and name not in self.folders:
            self.folder(os.path.dirname(name))
            self.folders.add(name)
            self._entry(name, 0o040755, b"")

    def file(self, name, data, mode=0o755):
        self.folder(os.path.dirname(name))
        self._entry(name, 0o100000 | mode, data)

    def bytes(self):
        self._entry("TRAILER!!!", 0, b"")
        return b"".join(self.parts)


def build(modules_top, busybox, files):
    """The archive's bytes. files: name below /lab (or 'init') → content."""
    tree = ModuleTree(modules_top)
    archive = Cpio()
    archive.file("bin/busybox", Path(busybox).read_bytes())
    needed = []
    for shape, wanted in MODULES.items():
        order = tree.order(wanted)
        archive.file(f"lab/modules.{shape}", "".join(f"{m}.ko\n" for m in order).encode())
        needed += [m for m in order if m not in needed]
    for name in needed:
        archive.file(f"lab/modules/{name}.ko", tree.body(name), 0o644)
    for name, data in files.items():
        archive.file("init" if name == "init" else f"lab/{name}", data)
    return archive.bytes()
