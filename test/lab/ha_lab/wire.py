# SPDX-License-Identifier: BSD-3-Clause
"""Frames between client, warden and agent: type (1), id (4), length (4), payload; little-endian. See guest/agent.h."""

import struct

HEADER = struct.Struct("<cII")


def pack(kind, number, payload=b""):
    return HEADER.pack(kind.encode(), number, len(payload)) + payload


async def read_async(reader):
    kind, number, length = HEADER.unpack(await reader.readexactly(HEADER.size))
    return kind.decode(), number, await reader.readexactly(length)


def read_exactly(sock, length):
    parts = []
    while length:
        part = sock.recv(min(length, 1 << 16))
        if not part:
            raise ConnectionError("the lab closed the connection")
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def read(sock):
    kind, number, length = HEADER.unpack(read_exactly(sock, HEADER.size))
    return kind.decode(), number, read_exactly(sock, length)


def exec_payload(cwd, env, argv):
    words = [cwd, str(len(env))] + [f"{k}={v}" for k, v in env.items()] + list(argv)
    return b"".join(w.encode("utf-8", "surrogateescape") + b"\0" for w in words)
