# SPDX-License-Identifier: BSD-3-Clause
"""The warden: the process that holds one lab. It starts cable and guests, serves `lab ...` requests, and ends with all of them."""

import asyncio
import fcntl
import json
import os
import shutil
import signal
import socket
import sys
import time

from . import LabError, fault, paths, qemu, wire
from .guest import Guest

IDLE_SECONDS = 3600  # a forgotten lab ends by itself
BASE_ENV = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "USER": "root",
            "LANG": "C.UTF-8", "TERM": "dumb"}


class Cable:
    """The program that carries the frames (shape two)."""

    def __init__(self, program, log):
        self.program, self.log = program, log
        self.process = None
        self.lock = asyncio.Lock()

    async def start(self):
        self.process = await asyncio.create_subprocess_exec(str(self.program), stdin=asyncio.subprocess.DEVNULL, stdout=self.log,
                                                            stderr=self.log, preexec_fn=qemu.die_with_parent)
        for _ in range(500):
            if os.path.exists("m.2.in") or self.process.returncode is not None:
                return
            await asyncio.sleep(0.01)

    async def ask(self, text):
        """Sends a command, returns the acknowledged reply."""
        async with self.lock:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
                sock.bind("")  # any abstract name, to be answered at
                sock.settimeout(3)
                try:
                    sock.sendto(text.encode(), "cable.ctl")
                    reply = sock.recv(1024).decode()
                except OSError as error:
                    raise LabError(f"the cable does not answer: {error}") from error
        if not reply.startswith("ok"):
            raise LabError(f"cable: {reply}")
        return reply

    async def stop(self):
        if self.process is not None and self.process.returncode is None:
            self.process.kill()
            await self.process.wait()


class Warden:
    def __init__(self, run, cache, options):
        self.run, self.cache = run, cache
        self.shape = options["shape"]
        self.options = options
        self.lanes = fault.Lanes()
        self.fault_lock = asyncio.Lock()
        self.guests, self.cable = [], None
        self.jobs, self.next_job = {}, 0
        self.ending = asyncio.Event()
        self.ready = asyncio.get_running_loop().create_future()
        self.started, self.touched, self.busy = time.monotonic(), time.monotonic(), 0

    # ---- life ----

    async def start(self):
        accelerator = await asyncio.to_thread(qemu.accelerator, self.cache)
        self.options["accelerator"] = accelerator
        (self.run.share / ".binds").write_text("".join(f"{p}\n" for p in self.options["binds"]))
        log = open("log/qemu.log", "w")
        if self.shape == "two":
            self.cable = Cable(self.cache / "cable", open("log/cable.log", "w"))
            await self.cable.start()
        numbers = (1, 2) if self.shape == "two" else (1,)
        for number in numbers:
            command = qemu.guest(self.cache, accelerator, self.shape, number, self.options["mem"], self.run)
            self.guests.append(Guest(number, command))
        await asyncio.gather(*(g.start(log) for g in self.guests))
        states = await asyncio.wait_for(asyncio.gather(*(g.state for g in self.guests)), self.options["timeout"])
        for guest, state in zip(self.guests, states):
            if state != "ready":
                raise LabError(f"guest {guest.number}: {state}")

    async def boot(self):
        try:
            await self.start()
            self.options["boot_seconds"] = round(time.monotonic() - self.started, 2)
            self.run.state.write_text(json.dumps(self.options) + "\n")
            self.ready.set_result({"boot_seconds": self.options["boot_seconds"], "accelerator": self.options["accelerator"]})
        except asyncio.TimeoutError:
            self.fail(f"the guests were not ready within {self.options['timeout']:g} s")
        except (LabError, OSError) as error:
            self.fail(str(error))

    def fail(self, why):
        tails = []
        for guest in self.guests:
            try:
                lines = self.run.console(guest.number).read_text(errors="replace").splitlines()
                tails.append(f"--- console of guest {guest.number}, last lines:\n" + "\n".join(lines[-15:]))
            except OSError:
                pass
        try:
            tails.append((self.run.log / "qemu.log").read_text(errors="replace").strip())
        except OSError:
            pass
        self.ready.set_result({"error": "\n".join([why] + [t for t in tails if t])})
        asyncio.get_running_loop().call_later(5, self.ending.set)

    async def live(self):
        server = await asyncio.start_unix_server(self.serve, "warden.sock", limit=1 << 22)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, self.ending.set)
        booting = asyncio.create_task(self.boot())
        while not self.ending.is_set():
            try:
                await asyncio.wait_for(self.ending.wait(), 30)
            except asyncio.TimeoutError:
                running = self.busy or any(not task.done() for task, _ in self.jobs.values())
                if not running and time.monotonic() - self.touched > IDLE_SECONDS:
                    print("ending: nobody asked for anything for an hour", flush=True)
                    break
        server.close()
        booting.cancel()
        for part in self.guests + [self.cable]:
            if part is not None:
                await part.stop()

    # ---- requests ----

    async def serve(self, reader, writer):
        self.busy += 1
        try:
            request = json.loads(await reader.readline())
            handler = getattr(self, "do_" + request["op"])
            await handler(request, reader, writer)
        except LabError as error:
            writer.write(wire.pack("J", 0, json.dumps({"error": str(error)}).encode()))
        except (ValueError, KeyError, AttributeError, OSError) as error:
            writer.write(wire.pack("J", 0, json.dumps({"error": f"request not understood: {error!r}"}).encode()))
        finally:
            self.busy -= 1
            self.touched = time.monotonic()
            try:
                await writer.drain()
                writer.close()
            except OSError:
                pass

    @staticmethod
    def answer(writer, **fields):
        writer.write(wire.pack("J", 0, json.dumps(fields).encode()))

    async def do_ready(self, request, reader, writer):
        self.answer(writer, shape=self.shape, **await asyncio.shield(self.ready))

    async def do_status(self, request, reader, writer):
        counts = await self.cable.ask("count") if self.cable and self.cable.process else ""
        self.answer(writer, name=self.run.name, shape=self.shape, warden=os.getpid(), up_seconds=round(time.monotonic() - self.started),
                    boot_seconds=self.options.get("boot_seconds"), accelerator=self.options.get("accelerator"),
                    guests={f"guest {g.number}": "running" if g.alive else "gone" for g in self.guests},
                    faults=self.lanes.abnormal(), frames=counts[3:], share=str(self.run.share), log=str(self.run.log),
                    jobs={i: "running" if not t.done() else t.result() for i, (t, _) in self.jobs.items()})

    async def do_down(self, request, reader, writer):
        for part in self.guests + [self.cable]:
            if part is not None:
                await part.stop()
        self.answer(writer, ok=True)
        await writer.drain()
        self.ending.set()

    # ---- commands ----

    def guest_of(self, host):
        return self.guests[host - 1] if self.shape == "two" else self.guests[0]

    def environment(self, host):
        env = dict(BASE_ENV, LAB_NAME=self.run.name, LAB_SHAPE=self.shape, LAB_SHARE=str(self.run.share),
                   LAB_HOST=f"h{host}", LAB_PEER=f"h{3 - host}")
        if self.shape == "two":
            env.update(LAB_RAIL_A="rxe_a", LAB_RAIL_B="rxe_b")
        else:
            env.update(LAB_RAIL_A=f"rxe_a{host}", LAB_RAIL_B=f"rxe_b{host}", UCX_NET_DEVICES=f"rxe_a{host}:1,rxe_b{host}:1",
                       UCX_HA_RC_RAILS=f"rxe_a{host}:1+rxe_b{host}:1", UCX_WARN_UNUSED_ENV_VARS="n")
        return env

    async def command(self, request, host, sink):
        await self.check_ready()
        env = dict(self.environment(host), **request.get("env", {}))
        return await self.guest_of(host).run(request["argv"], env, request["cwd"], request["timeout"], sink)

    async def check_ready(self):
        state = await asyncio.shield(self.ready)
        if "error" in state:
            raise LabError(state["error"])

    async def do_exec(self, request, reader, writer):
        """Streams the output of one host's command; the caller's leaving kills it."""
        def sink(stream, data):
            writer.write(wire.pack(stream, 0, data))

        work = asyncio.create_task(self.command(request, request["host"], sink))
        left = asyncio.create_task(reader.read(1))
        await asyncio.wait([work, left], return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            work.cancel()
            return
        left.cancel()
        writer.write(wire.pack("Q", 0, work.result().to_bytes(4, "little")))

    async def do_spawn(self, request, reader, writer):
        """A command in the background: its output goes to files."""
        await self.check_ready()
        self.next_job += 1
        number = self.next_job
        files = {s: open(self.run.jobs / f"{number}.{n}", "wb", buffering=0) for s, n in (("O", "out"), ("E", "err"))}

        async def work():
            try:
                return await self.command(request, request["host"], lambda stream, data: files[stream].write(data))
            except asyncio.CancelledError:
                return 137
            finally:
                for file in files.values():
                    file.close()

        self.jobs[number] = (asyncio.create_task(work()), request["argv"])
        self.answer(writer, id=number)

    def job(self, request):
        try:
            return self.jobs[request["id"]][0]
        except KeyError:
            known = ", ".join(map(str, self.jobs)) or "none"
            raise LabError(f"no background command {request['id']} in lab {self.run.name}; there are: {known}") from None

    async def do_wait(self, request, reader, writer):
        task = self.job(request)
        await asyncio.wait([task], timeout=request["deadline"])
        if not task.done():
            raise LabError(f"background command {request['id']} still runs after {request['deadline']:g} s")
        self.answer(writer, code=task.result())

    async def do_kill(self, request, reader, writer):
        task = self.job(request)
        task.cancel()
        await asyncio.wait([task], timeout=5)
        self.answer(writer, ok=True)

    # ---- faults ----

    async def do_fault(self, request, reader, writer):
        await self.check_ready()
        wanted = fault.parse(request["words"])
        if wanted.kind in ("after", "control") and self.shape == "one":
            raise LabError(f"fault {wanted.kind}: only in shape two, whose cable can look into frames")
        if wanted.kind in fault.CARD_KINDS and self.shape == "one":
            raise LabError(f"fault {wanted.kind}: only in shape two, whose hosts have cards")
        async with self.fault_lock:
            before = time.time()
            await self.apply(wanted)
            self.answer(writer, fault=str(wanted), asked=before, in_force=time.time())

    async def apply(self, wanted):
        if wanted.kind in ("drop", "drop-from", "acks", "loss", "delay", "after", "control", "clear"):
            touched = self.lanes.apply(wanted)
            if self.shape == "two":
                for key in touched:
                    await self.cable.ask(self.lanes.cable_command(key))
            else:
                script = self.lanes.switch_script(touched)
                if script:
                    await self.guests[0].script(script)
        if wanted.kind in ("carrier-off", "carrier-on", "clear") and self.shape == "two":
            for host in wanted.hosts:
                for rail in wanted.rails:
                    await self.guest_of(host).qmp("set_link", name=rail, up=wanted.kind != "carrier-off")
        scripts = [(host, fault.device_script(self.shape, wanted, host)) for host in wanted.hosts]
        await asyncio.gather(*(self.guest_of(host).script(text) for host, text in scripts if text))


def take_over(run):
    """Makes the run folder ours and empty; False when another warden holds the name."""
    run.path.parent.mkdir(parents=True, exist_ok=True)
    lock = os.open(str(run.path) + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    shutil.rmtree(run.path, ignore_errors=True)
    for folder in (run.path, run.share, run.log, run.jobs):
        folder.mkdir(mode=0o755)
    run.pid.write_text(f"{os.getpid()}\n")
    return True


def main(name, cache, options):
    """The warden process. Relative names of sockets keep us clear of the limit on their length."""
    run = paths.RunDir(name)
    if not take_over(run):
        print(f"lab {name} is up already", file=sys.stderr)
        return 3
    os.chdir(run.path)
    log = os.open("log/warden.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)

    async def run_warden():
        await Warden(run, cache, options).live()

    asyncio.run(run_warden())
    for left in ("warden.sock", "warden.pid"):
        try:
            os.unlink(left)
        except OSError:
            pass
    return 0
