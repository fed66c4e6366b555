# SPDX-License-Identifier: BSD-3-Clause
"""The warden's view of one guest: its QEMU, its agent, the commands under way in it."""

import asyncio
import json
import struct
import time

from . import LabError, qemu, wire

KILLED, LOST = 124, 255


class Command:
    """A command in a guest; its output goes to sink(stream, data), stream 'O' or 'E'."""

    def __init__(self, sink):
        self.sink = sink
        self.done = asyncio.get_running_loop().create_future()


class Guest:
    def __init__(self, number, command):
        self.number = number
        self.command = command
        self.process = None
        self.writer = None
        self.commands = {}
        self.next_id = 0
        self.state = asyncio.get_running_loop().create_future()
        self.alive = False

    async def start(self, log):
        self.process = await asyncio.create_subprocess_exec(
            *self.command, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=qemu.die_with_parent)
        self.alive = True
        reader, self.writer = await self._connect(f"agent.{self.number}")
        self.tasks = [asyncio.create_task(self._listen(reader)), asyncio.create_task(self._watch())]

    async def _connect(self, path):
        while True:
            try:
                return await asyncio.open_unix_connection(path)
            except OSError as error:
                if self.process.returncode is not None:
                    raise LabError(f"QEMU of guest {self.number} ended at once; see log/qemu.log") from error
                await asyncio.sleep(0.02)

    async def _watch(self):
        code = await self.process.wait()
        self._lost(f"guest {self.number} is gone (QEMU ended with {code})")

    def _lost(self, why):
        self.alive = False
        if not self.state.done():
            self.state.set_result(why)
        for command in list(self.commands.values()):
            command.sink("E", f"lab: {why}\n".encode())
            self._finish(command, LOST)

    @staticmethod
    def _finish(command, code):
        if not command.done.done():
            command.done.set_result(code)

    async def _listen(self, reader):
        try:
            while True:
                kind, number, payload = await wire.read_async(reader)
                if kind == "S":
                    self.writer.write(wire.pack("T", 0, struct.pack("<Q", time.time_ns())))
                    if not self.state.done():
                        self.state.set_result(payload.decode())
                    continue
                command = self.commands.get(number)
                if command is None:
                    continue
                if kind == "Q":
                    self._finish(command, struct.unpack("<I", payload)[0])
                else:
                    command.sink(kind, payload)
        except (asyncio.IncompleteReadError, OSError):
            pass

    async def run(self, argv, env, cwd, timeout, sink):
        """Runs a command and returns its exit status, 124 when the deadline killed it; killed too when the caller is cancelled."""
        if not self.alive:
            sink("E", f"lab: guest {self.number} is gone\n".encode())
            return LOST
        self.next_id += 1
        number, command = self.next_id, Command(sink)
        self.commands[number] = command
        try:
            self.writer.write(wire.pack("X", number, wire.exec_payload(cwd, env, argv)))
            return await asyncio.wait_for(asyncio.shield(command.done), timeout)
        except asyncio.TimeoutError:
            self.kill(number)
            await asyncio.wait([command.done], timeout=2)  # what it said last
            sink("E", f"lab: killed: the command did not end within {timeout:g} s\n".encode())
            return KILLED
        except asyncio.CancelledError:
            self.kill(number)
            raise
        finally:
            del self.commands[number]

    def kill(self, number):
        self.writer.write(wire.pack("K", number))

    async def script(self, text, timeout=20):
        """A shell script of the lab's own; raises when it fails."""
        said = []
        code = await self.run(["/bin/sh", "-c", text], {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}, "/", timeout,
                              lambda _, data: said.append(data))
        if code != 0:
            raise LabError(f"in guest {self.number}: {b''.join(said).decode(errors='replace').strip() or f'exit status {code}'}")

    async def qmp(self, execute, **arguments):
        """One command to QEMU's monitor."""
        reader, writer = await asyncio.open_unix_connection(f"qmp.{self.number}")
        try:
            await reader.readline()
            for request in ({"execute": "qmp_capabilities"}, {"execute": execute, "arguments": arguments}):
                writer.write(json.dumps(request).encode() + b"\n")
                while True:
                    answer = json.loads(await reader.readline())
                    if "error" in answer:
                        raise LabError(f"QEMU refused {execute}: {answer['error']['desc']}")
                    if "return" in answer:
                        break
        finally:
            writer.close()

    async def stop(self):
        if self.process is not None and self.process.returncode is None:
            self.process.kill()
            await self.process.wait()
