#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""https_store.py CERTIFICATE KEY: a metadata server behind TLS; prints its port, serves until it is killed."""

import http.server
import ssl
import sys
import urllib.parse

values = {}


class Store(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def key(self):
        return urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)["key"][0]

    def answer(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        body = values.get(self.key())
        self.answer(404 if body is None else 200, body or b"")

    def do_PUT(self):
        values[self.key()] = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(200)

    def do_DELETE(self):
        values.pop(self.key(), None)
        self.answer(200)

    def log_message(self, *ignored):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
