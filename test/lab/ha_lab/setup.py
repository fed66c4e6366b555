# SPDX-License-Identifier: BSD-3-Clause
"""`lab setup`: fetches a kernel, builds the initramfs and the cable. Done once, kept in the cache."""

import contextlib
import fcntl
import hashlib
import json
import lzma
import os
import re
import shutil
import subprocess
import tempfile
import zlib
from pathlib import Path

from . import LabError, initramfs, paths, qemu

PACKAGES = """qemu-system-x86 mount busybox-static gcc libc6-dev python3-minimal iproute2 rdma-core ibverbs-utils
ibverbs-providers perftest ucx-utils openmpi-bin""".split()
PROGRAMS = {"qemu-system-x86_64": "qemu-system-x86", "gcc": "gcc", "ip": "iproute2", "tc": "iproute2", "rdma": "iproute2",
            "mount": "mount"}
PVH_NOTE = re.compile(rb"\x04\0\0\0[\x04\x08]\0\0\0\x12\0\0\0Xen\0")  # the ELF note that names the PVH entry point
SOURCES = ["cable.c", "guest/agent.c", "guest/rsh.c", "guest/agent.h", "guest/init", "guest/boot", "guest/rank-env", "guest/rsh",
           "ha_lab/initramfs.py", "ha_lab/setup.py"]


def say(text):
    print(f"lab setup: {text}", flush=True)


@contextlib.contextmanager
def locked(path):
    """One setup at a time; a second one waits and then finds everything done."""
    with open(path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run(command, **options):
    """Runs a host program; its complaint becomes ours."""
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    if result.returncode != 0:
        raise LabError(f"'{' '.join(map(str, command))}' failed:\n{result.stderr.strip()}")
    return result.stdout


def busybox_path():
    for path in ("/usr/bin/busybox", "/bin/busybox"):
        if os.path.exists(path):
            if b"/ld-linux" not in Path(path).read_bytes():
                return path
            raise LabError("busybox is linked dynamically; apt-get install busybox-static")
    raise LabError("busybox is missing; apt-get install busybox-static")


def check_programs():
    search = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = sorted({package for program, package in PROGRAMS.items() if not shutil.which(program, path=search)})
    if missing:
        raise LabError(f"missing on this machine; run: apt-get install --no-install-recommends {' '.join(missing)}")


def kernel_packages():
    """The distribution's kernel as package names: the image, and what of it is packaged apart (Debian 14: all of it)."""
    chosen = os.environ.get("HA_LAB_KERNEL")
    if chosen:
        return [chosen]
    for meta in ("linux-image-amd64", "linux-image-generic"):
        text = subprocess.run(["apt-cache", "depends", meta], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        found = re.search(r"Depends: (linux-image-\S*\d\S*)", text)
        if found:
            image = found.group(1)
            version = re.sub(r"^linux-image-(unsigned-)?", "", image)
            extra = [f"linux-{part}-{version}" for part in ("base", "binary", "modules", "modules-extra")]
            known = run(["apt-cache", "pkgnames", "linux-"]).split()
            return [image] + [p for p in extra if p in known]
    return []


def fetch_kernel(cache):
    """Downloads and unpacks; returns (vmlinuz, folder of modules). Nothing is installed."""
    kernel = cache / "linux"
    done = (kernel / "done").read_text().split() if (kernel / "done").exists() else []
    chosen = os.environ.get("HA_LAB_KERNEL")
    if not done or (chosen and chosen not in done):
        packages = kernel_packages()
        if not packages and os.getuid() == 0:
            run(["apt-get", "update", "-q"])
            packages = kernel_packages()
        if not packages:
            raise LabError("apt knows no kernel package; run apt-get update, or name one in HA_LAB_KERNEL")
        say(f"fetching {' '.join(packages)}")
        shutil.rmtree(kernel, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=cache) as work:
            download(packages, work)
            for archive in sorted(Path(work).glob("*.deb")):
                run(["dpkg", "-x", archive, os.path.join(work, "tree")])
            prune(Path(work) / "tree")
            os.rename(os.path.join(work, "tree"), kernel)
        (kernel / "done").write_text(" ".join(packages) + "\n")
    tops = sorted(p for lib in ("lib", "usr/lib") for p in (kernel / lib / "modules").glob("*"))
    images = sorted((kernel / "boot").glob("vmlinuz-*")) or [top / "vmlinuz" for top in tops if (top / "vmlinuz").exists()]
    if not images or not tops:
        raise LabError(f"no kernel in {kernel}; remove that folder and run lab setup again")
    return images[-1], tops[-1]


def download(packages, folder):
    command = ["apt-get", "-q", "-o", "APT::Sandbox::User=", "download"] + packages
    try:
        run(command, cwd=folder)
    except LabError:
        if os.getuid() != 0:
            raise
        run(["apt-get", "update", "-q"])  # a stale list names a version which is gone
        run(command, cwd=folder)


def prune(tree):
    """Keeps of an unpacked kernel what a lab may load: 400 MB become 60."""
    keep = re.compile(r"/kernel/(net|fs|lib|crypto|arch|drivers/(net|infiniband|virtio|char|block))/")
    for path in tree.rglob("*.ko*"):
        if not keep.search(str(path)) or "/drivers/net/wireless/" in str(path):
            path.unlink()
    shutil.rmtree(tree / "usr" / "share", ignore_errors=True)
    for path in (tree / "boot").glob("System.map*"):
        path.unlink()


def unpack_image(data):
    """The kernel inside a bzImage, or None. QEMU starts it directly (PVH), which saves the guest the slow unpacking."""
    for magic, unpack in ((b"\xfd7zXZ\0", lambda d: lzma.LZMADecompressor().decompress(d)),
                          (b"\x1f\x8b\x08", lambda d: zlib.decompressobj(31).decompress(d)),
                          (b"\x28\xb5\x2f\xfd", lambda d: subprocess.run(["zstd", "-dcq"], input=d, stdout=subprocess.PIPE,
                                                                          stderr=subprocess.DEVNULL).stdout)):
        at = data.find(magic)
        while at >= 0:
            try:
                kernel = unpack(data[at:])
            except (lzma.LZMAError, zlib.error, OSError):
                kernel = b""
            if kernel[:4] == b"\x7fELF" and PVH_NOTE.search(kernel):
                return kernel
            at = data.find(magic, at + 1)
    return None


def install_kernel(image, folder):
    """Writes folder/kernel: the unpacked kernel when that boots, else the image as it is."""
    data = image.read_bytes()
    unpacked = unpack_image(data)
    if unpacked is not None:
        (folder / "kernel").write_bytes(unpacked)
        if qemu.probe(folder, "tcg"):
            return
    (folder / "kernel").write_bytes(data)


def compile_c(sources, output):
    run(["gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-o", output] + [paths.SOURCE / s for s in sources])


def source_digest():
    digest = hashlib.sha256(os.environ.get("HA_LAB_KERNEL", "").encode())
    for name in SOURCES:
        path = paths.SOURCE / name
        digest.update(path.read_bytes() if path.exists() else b"")
    return digest.hexdigest()


def build(cache):
    """Everything of the lab that is compiled or packed, each replaced in one step: running labs keep theirs."""
    image, modules = fetch_kernel(cache)
    name = f"vmlinuz-{modules.name}"
    say(f"building initramfs and cable for {name}")
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        work = Path(folder)
        compile_c(["cable.c"], work / "cable")
        compile_c(["guest/agent.c", "guest/rsh.c"], work / "agent")
        files = {"agent": (work / "agent").read_bytes()}
        for program in ("init", "boot", "rank-env", "rsh"):
            files[program] = (paths.SOURCE / "guest" / program).read_bytes()
        (work / "initramfs").write_bytes(initramfs.build(modules, busybox_path(), files))
        install_kernel(image, work)
        for part in ("cable", "initramfs", "kernel"):
            os.replace(work / part, cache / part)
    return name


def setup(quiet=False):
    """Makes the cache complete; returns its folder. Quick when nothing changed."""
    cache = paths.cache_dir()
    stamp = cache / "stamp.json"
    wanted = source_digest()

    def done():
        try:
            return json.loads(stamp.read_text())["digest"] == wanted
        except (OSError, ValueError, KeyError):
            return False

    if not done():
        cache.mkdir(parents=True, exist_ok=True)
        check_programs()
        with locked(cache / "lock"):
            if not done():
                kernel = build(cache)
                (cache / "stamp.new").write_text(json.dumps({"digest": wanted, "kernel": kernel}) + "\n")
                os.replace(cache / "stamp.new", stamp)
    if not quiet:
        say(f"ready in {cache} ({json.loads(stamp.read_text())['kernel']})")
    return cache
