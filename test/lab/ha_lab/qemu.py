# SPDX-License-Identifier: BSD-3-Clause
"""QEMU command lines, and whether this machine's KVM really boots a guest."""

import ctypes
import json
import os
import signal
import subprocess
from pathlib import Path

from . import LabError

PROGRAM = "qemu-system-x86_64"
KERNEL_WORDS = ("console=ttyS0 quiet loglevel=3 panic=-1 mitigations=off tsc=reliable no_timer_check nokaslr audit=0 "
                "random.trust_cpu=on softlockup_all_cpu_backtrace=1")
ACCELERATORS = {"kvm": ["-accel", "kvm", "-cpu", "host"], "tcg": ["-accel", "tcg,thread=multi", "-cpu", "max"]}
PROBE_SECONDS = 15


def die_with_parent():
    """For preexec_fn: no QEMU outlives the process which started it."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def machine(cache, accelerator, cpus, memory, words):
    return [PROGRAM, "-M", "q35", *ACCELERATORS[accelerator], "-smp", str(cpus), "-m", str(memory),
            "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
            "-kernel", str(cache / "kernel"), "-initrd", str(cache / "initramfs"), "-append", f"{KERNEL_WORDS} {words}"]


def share(name, path, writable=False):
    mode = "" if writable else ",readonly=on"
    escaped = str(path).replace(",", ",,")
    return ["-fsdev", f"local,id={name},path={escaped},security_model=none,multidevs=remap{mode}",
            "-device", f"virtio-9p-pci,fsdev={name},mount_tag={name}"]


def network(rail, guest):
    """A network card on the cable; sockets are relative to the run folder, QEMU's working folder."""
    mac = f"52:54:00:77:{ord(rail):02x}:{guest:02x}"
    return ["-netdev", f"dgram,id={rail},local.type=unix,local.path={rail}.{guest},remote.type=unix,remote.path={rail}.{guest}.in",
            "-device", f"virtio-net-pci,netdev={rail},mac={mac},host_mtu=9000,romfile="]


def guest(cache, accelerator, shape, number, memory, run):
    """The command line of one guest."""
    words = f"lab.shape={shape} lab.host={number} lab.share={run.share} lab.name={run.name}"
    command = machine(cache, accelerator, 1 if shape == "two" else 2, memory, words)
    command += ["-serial", f"file:log/h{number}.console", "-qmp", f"unix:qmp.{number},server=on,wait=off",
                "-device", "virtio-serial-pci", "-chardev", f"socket,id=agent,path=agent.{number},server=on,wait=off",
                "-device", "virtserialport,chardev=agent,name=lab.agent"]
    command += share("host", "/") + share("live", "/") + share("share", run.share, writable=True)
    if shape == "two":
        for rail in "abm":
            command += network(rail, number)
    return command


def probe(cache, accelerator):
    """Boots a guest that only says it is there."""
    command = machine(cache, accelerator, 1, 256, "lab.shape=probe") + ["-serial", "stdio"]
    try:
        result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                timeout=PROBE_SECONDS, preexec_fn=die_with_parent)
    except subprocess.TimeoutExpired:
        return False
    except OSError as error:
        raise LabError(f"cannot run {PROGRAM}: {error}") from error
    return b"LAB: probe ok" in result.stdout


def accelerator(cache):
    """'kvm' only when a guest boots with it: a writable /dev/kvm proves nothing. Remembered until this machine reboots."""
    forced = os.environ.get("HA_LAB_ACCEL")
    if forced:
        if forced not in ACCELERATORS:
            raise LabError(f"HA_LAB_ACCEL is '{forced}'; it must be kvm or tcg")
        return forced
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    note = Path(cache) / "accelerator.json"
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    try:
        known = json.loads(note.read_text())
        if known["boot"] == boot:
            return known["accelerator"]
    except (OSError, ValueError, KeyError):
        pass
    chosen = "kvm" if probe(cache, "kvm") else "tcg"
    fresh = note.with_suffix(f".{os.getpid()}")
    fresh.write_text(json.dumps({"boot": boot, "accelerator": chosen}) + "\n")
    os.replace(fresh, note)
    return chosen
