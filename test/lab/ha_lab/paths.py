# SPDX-License-Identifier: BSD-3-Clause
"""Where things are: our sources, the cache (built once), the run folder of each lab."""

import os
import re
import socket
from pathlib import Path

from . import LabError

SOURCE = Path(__file__).resolve().parent.parent
PROJECT = SOURCE.parent.parent


def cache_dir():
    """Kernel, initramfs and cable; made by `lab setup`."""
    chosen = os.environ.get("HA_LAB_CACHE")
    if chosen:
        return Path(chosen).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ucx-ha-lab"


def runs_dir():
    """Parent of all run folders: short and private, for the sockets in it."""
    chosen = os.environ.get("HA_LAB_RUN")
    path = Path(chosen).absolute() if chosen else Path(f"/tmp/ha-lab-{os.getuid()}")
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.stat().st_uid != os.getuid() or path.is_symlink():
        raise LabError(f"run folder {path} belongs to somebody else; set HA_LAB_RUN to a folder of yours")
    return path


class RunDir:
    """The folder of one lab: sockets, logs, the folder shared with the guests."""

    def __init__(self, name):
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,40}", name):
            raise LabError(f"lab name '{name}' is not usable: letters, digits and _.- only, at most 41")
        self.name = name
        self.path = runs_dir() / name
        self.share = self.path / "share"
        self.log = self.path / "log"
        self.jobs = self.path / "jobs"
        self.state = self.path / "state.json"
        self.pid = self.path / "warden.pid"

    def console(self, guest):
        return self.log / f"h{guest}.console"


def unix_connect(path, kind=socket.SOCK_STREAM, timeout=5.0):
    """Connects to a unix socket whatever the length of its path (the kernel allows 107 bytes)."""
    sock = socket.socket(socket.AF_UNIX, kind)
    sock.settimeout(timeout)
    folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
    try:
        sock.connect(f"/proc/self/fd/{folder}/{os.path.basename(path)}")
    except OSError:
        sock.close()
        raise
    finally:
        os.close(folder)
    return sock
