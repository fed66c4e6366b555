# SPDX-License-Identifier: BSD-3-Clause
"""The caller's side: asks the warden of a lab. Every call has a deadline of its own, should the warden be stuck."""

import json
import os
import signal
import sys
import time

from . import LabError, paths, wire

GRACE = 15  # the warden keeps the deadlines; only a stuck one makes us wait this much longer


class Client:
    def __init__(self, name):
        self.run = paths.RunDir(name)

    def connect(self, timeout):
        try:
            return paths.unix_connect(str(self.run.path / "warden.sock"), timeout=timeout)
        except OSError:
            raise LabError(f"lab {self.run.name} is not up; start it with: lab up --name {self.run.name}") from None

    def ask(self, patience=30.0, **request):
        """A request with one JSON answer."""
        sock = self.connect(patience)
        try:
            with sock:
                sock.sendall(json.dumps(request).encode() + b"\n")
                while True:
                    kind, _, payload = wire.read(sock)
                    if kind == "J":
                        break
        except (OSError, ConnectionError) as error:
            raise LabError(f"lab {self.run.name} did not answer ({request['op']}): {error}") from error
        answer = json.loads(payload)
        if "error" in answer:
            raise LabError(answer["error"])
        return answer

    def execute(self, request, sink):
        """Runs a command, hands its output to sink(stream, data) as it comes, returns its exit status."""
        end = time.monotonic() + request["timeout"] + GRACE
        sock = self.connect(GRACE)
        with sock:
            sock.sendall(json.dumps(dict(request, op="exec")).encode() + b"\n")
            while True:
                sock.settimeout(max(0.1, end - time.monotonic()))
                try:
                    kind, _, payload = wire.read(sock)
                except (OSError, ConnectionError) as error:
                    raise LabError(f"lab {self.run.name} was lost during the command: {error}") from error
                if kind == "Q":
                    return int.from_bytes(payload, "little")
                if kind == "J":
                    raise LabError(json.loads(payload).get("error", "?"))
                sink(kind, payload)


def start(name, cache, options, program):
    """Starts a warden and waits until its guests are ready. Returns its answer, with 'already' when it was up before."""
    client = Client(name)
    try:
        answer = client.ask(options["timeout"] + GRACE, op="ready")
    except LabError as error:
        if "is not up" not in str(error):
            raise
    else:
        if answer["shape"] != options["shape"]:
            raise LabError(f"lab {name} is up in shape {answer['shape']}; choose another --name, or: lab down --name {name}")
        return dict(answer, already=True)
    import subprocess  # here, for the many commands which do not need them start quicker without
    import tempfile
    with tempfile.TemporaryFile("w+") as complaints:
        process = subprocess.Popen([sys.executable, program, "_warden", name, str(cache), json.dumps(options)],
                                   stdin=subprocess.DEVNULL, stdout=complaints, stderr=complaints, start_new_session=True)
        end = time.monotonic() + options["timeout"] + GRACE
        while True:
            try:
                return client.ask(options["timeout"] + GRACE, op="ready")
            except LabError as error:
                if process.poll() is not None:
                    complaints.seek(0)
                    log = client.run.log / "warden.log"
                    more = log.read_text(errors="replace") if process.returncode != 3 and log.exists() else ""
                    raise LabError(f"the lab did not start: {complaints.read().strip()} {more}".rstrip()) from error
                if "is not up" not in str(error) or time.monotonic() > end:
                    stop(name)
                    raise
            time.sleep(0.02)


def forget(name):
    """Removes what a lab that is down left behind: results and logs."""
    import shutil
    run = paths.RunDir(name)
    shutil.rmtree(run.path, ignore_errors=True)
    try:
        os.unlink(str(run.path) + ".lock")
    except OSError:
        pass


def _warden_pid(run):
    """The warden's process id, when it is really a warden of this lab."""
    try:
        pid = int(run.pid.read_text())
        command = open(f"/proc/{pid}/cmdline", "rb").read().split(b"\0")
    except (OSError, ValueError):
        return None
    return pid if b"_warden" in command and run.name.encode() in command else None


def stop(name):
    """Ends a lab, politely if it listens, by force if not. True when there was one."""
    client = Client(name)
    pid = _warden_pid(client.run)
    try:
        client.ask(10, op="down")
        was_up = True
    except LabError:
        was_up = pid is not None
    for number in (0, signal.SIGKILL):  # QEMU and cable die with the warden, whatever it dies of
        end = time.monotonic() + 3
        while pid is not None and _warden_pid(client.run) == pid and time.monotonic() < end:
            if number:
                try:
                    os.kill(pid, number)
                except OSError:
                    pass
            time.sleep(0.02)
    return was_up
