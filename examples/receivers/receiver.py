"""Receives webhooks: verifies each, acts once for each id, and confirms by 204.

It needs nothing but the standard library:

    WEBHOOK_SECRET=whsec_... python3 receiver.py 127.0.0.1:9000
"""

import base64
import hashlib
import hmac
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOLERANCE = 5 * 60  # seconds that the sender's clock may be off
MOST_BODY = 1 << 20
KEY = base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_"))

lock = threading.Lock()
done = set()  # in a real program: a table, written in the transaction of the effect


def verify(webhook_id, timestamp, signatures, body):
    """Whether one of the signatures is ours. While a secret is replaced there are two."""
    if not webhook_id or not timestamp.isdecimal() or abs(time.time() - int(timestamp)) > TOLERANCE:
        return False
    content = f"{webhook_id}.{timestamp}.".encode() + body
    want = "v1," + base64.b64encode(hmac.new(KEY, content, hashlib.sha256).digest()).decode()
    return any(hmac.compare_digest(one.encode(), want.encode()) for one in signatures.split())


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections stay open between requests
    timeout = 100

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MOST_BODY:
            self.close_connection = True
            return self.answer(400)
        body = self.rfile.read(int(length))  # the bytes as they came
        webhook_id = self.headers.get("webhook-id", "")
        if not verify(webhook_id, self.headers.get("webhook-timestamp", ""), self.headers.get("webhook-signature", ""), body):
            return self.answer(401)
        with lock:
            if webhook_id not in done:
                print(webhook_id, body.decode(), flush=True)  # the effect; slow work is noted here and done later
                done.add(webhook_id)
        self.answer(204)  # the first time, and each other time

    def answer(self, status):
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


host, _, port = sys.argv[1].rpartition(":")
server = ThreadingHTTPServer((host, int(port)), Receiver)
print(f"listening on {host}:{server.server_port}", flush=True)
server.serve_forever()
