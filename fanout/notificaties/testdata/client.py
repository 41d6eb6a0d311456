"""Plays the clients of the Notificaties API against a server; clients.md says what they send and read.

usage: CLIENT_SECRET=secret client.py API_ROOT CLIENT_ID

It needs no more than Python has. It listens on 127.0.0.1 for what the server delivers. At the first thing
that a client could not live with, it says so and ends with 1.
"""

import base64
import datetime
import hashlib
import hmac
import http.server
import json
import os
import queue
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

PATIENCE = 30  # seconds until a delivery that does not come is missed
ZONE = datetime.timezone(datetime.timedelta(hours=1))  # of the client


class Difference(Exception):
    """What the server does and a client of it does not expect."""


def check(what, got, want):
    if got != want:
        raise Difference(f"{what}: got {got!r}, want {want!r}")


def demand(what, holds):
    if not holds:
        raise Difference(what)


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def token(client, secret, issued=None):
    """A JWT as zgw-consumers mints it."""
    issued = int(time.time()) if issued is None else issued
    head = {"alg": "HS256", "typ": "JWT"}
    claims = {
        "iss": client, "iat": issued, "exp": issued + 12 * 60 * 60,
        "client_id": client, "user_id": "", "user_representation": "",
    }
    text = b".".join(b64(json.dumps(part, separators=(",", ":")).encode()) for part in (head, claims))
    return (text + b"." + b64(hmac.new(secret.encode(), text, hashlib.sha256).digest())).decode()


class Session:
    """Calls below the root of the API, as the clients' session does."""

    def __init__(self, root, authorization):
        self.root = root if root.endswith("/") else root + "/"
        self.authorization = authorization

    def call(self, method, path, body=None, kind="application/json"):
        url = self.root + path
        if "://" in path:  # a URL of an answer
            demand(f"the URL {path} of an answer is not below the root {self.root}", path.startswith(self.root))
            url = path
        headers = {"User-Agent": "python-requests/2.32.3", "Accept-Encoding": "identity", "Accept": "*/*"}
        if self.authorization:
            headers["Authorization"] = self.authorization
        data = None
        if body is not None:
            data, headers["Content-Type"] = json.dumps(body).encode(), kind
        request = urllib.request.Request(url, data, headers, method=method)
        try:
            with OPENER.open(request, timeout=10) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as answer:
            return answer.code, answer.read()

    def json(self, method, path, body=None, **more):
        """Decodes the answer before it looks at the status, as the clients do."""
        status, text = self.call(method, path, body, **more)
        try:
            return status, json.loads(text)
        except ValueError as e:
            raise Difference(f"{method} {path}: {status} without JSON: {text[:200]!r}") from e


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would turn a POST into a GET: none may come."""

    def redirect_request(self, *_):
        return None


# Neither redirects nor a proxy of this machine.
OPENER = urllib.request.build_opener(NoRedirect, urllib.request.ProxyHandler({}))


class Receiver(http.server.BaseHTTPRequestHandler):
    """Pages about channels, and callbacks: it keeps what arrives by the path that it arrives at."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(200 if self.path.startswith("/kanalen/") else 404)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        authorization = self.headers.get("Authorization")
        self.server.arrived(self.path).put((authorization, self.headers, body))
        self.answer(204 if authorization else 403)

    def answer(self, status):
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Callbacks(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Receiver)
        self.root = f"http://127.0.0.1:{self.server_port}"
        self.guard, self.queues = threading.Lock(), {}
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def arrived(self, path):
        with self.guard:
            return self.queues.setdefault(path, queue.Queue())

    def next(self, path):
        try:
            return self.arrived(path).get(timeout=PATIENCE)
        except queue.Empty:
            raise Difference(f"nothing arrived at {path} within {PATIENCE} s") from None

    def none_left(self, path):
        if not self.arrived(path).empty():
            raise Difference(f"one request too many arrived at {path}: {self.arrived(path).get()[2]!r}")


def register_channel(session, page, name, filters):
    """What register_kanalen does for one channel. It returns how it was registered, and the channel."""
    body = {"naam": name, "documentatieLink": f"{page}#{name}", "filters": filters}
    status, found = session.json("GET", "kanaal?" + urllib.parse.urlencode({"naam": name}))
    check(f"GET kanaal?naam={name}", status, 200)
    demand(f"GET kanaal?naam={name}: {found!r} is no list", isinstance(found, list))
    if found:
        status, made = session.json("PUT", found[0]["url"], body)
        check(f"PUT {found[0]['url']}: {made}", status, 200)
    else:
        status, made = session.json("POST", "kanaal", body)
        check(f"POST kanaal: {made}", status, 201)
    check("a channel's fields", {k: made.get(k) for k in body}, body)
    return ("PUT" if found else "POST"), made


def register_subscription(session, callbacks, path, more, auth):
    """Registers a webhook. It returns the URL that the client keeps."""
    status, made = session.json("POST", "abonnement", {"callbackUrl": callbacks.root + path, "auth": auth} | more)
    demand(f"POST abonnement: {status} {made}", isinstance(made, dict) and "url" in made)
    demand("the secret of a callback is shown", "auth" not in made)
    first, second = callbacks.next(path), callbacks.next(path)
    check("Authorization of the first probe", first[0], None)
    check("Authorization of the second probe", second[0], auth)
    check("the probes' bodies differ", first[2], second[2])
    callbacks.none_left(path)
    identity = made["url"].rsplit("/", 1)[1]
    check("the URL of a subscription", made["url"], f"{session.root}abonnement/{uuid.UUID(identity)}")
    return made["url"]


def notification(channel, when, kenmerken, source=None):
    message = {"kanaal": channel}
    if source:
        message["source"] = source
    return message | {
        "hoofdObject": "https://zaken.example.nl/api/v1/zaken/ddc6d192",
        "resource": "status",
        "resourceUrl": "https://zaken.example.nl/api/v1/statussen/44fdcebf",
        "actie": "create",
        "aanmaakdatum": when,
        "kenmerken": kenmerken,
    }


def publish(session, path, message, **more):
    """Only a status below 400 counts for a client."""
    status, text = session.call("POST", path, message, **more)
    check(f"POST {path}: {text[:500]!r}", status, 201)


def delivered(callbacks, path, auth, kind, want):
    authorization, headers, body = callbacks.next(path)
    check(f"Authorization at {path}", authorization, auth)
    check(f"Content-Type at {path}", headers.get("Content-Type"), kind)
    got = json.loads(body)
    check(f"what arrives at {path}", got, want)
    return got


def readable(message):
    """What the serializer of a receiver demands."""
    for field, most in {"kanaal": 50, "resource": 100, "actie": 100, "hoofdObject": 200, "resourceUrl": 200}.items():
        value = message.get(field)
        demand(f"{field} of a delivery: {value!r}", isinstance(value, str) and 0 < len(value) <= most)
    made = datetime.datetime.fromisoformat(message["aanmaakdatum"].replace("Z", "+00:00"))
    demand("aanmaakdatum of a delivery lies in the future", made <= datetime.datetime.now(datetime.timezone.utc))
    for name, value in message["kenmerken"].items():
        demand(f"kenmerk {name} of a delivery: {value!r}", isinstance(value, str) and len(value) <= 1000)


def utc(when):
    """A moment as it is delivered: UTC, whole milliseconds."""
    at = when.astimezone(datetime.timezone.utc)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"


def notifications(session, callbacks, channel, path, auth):
    """An object is made, changed and removed."""
    made = datetime.datetime.now(ZONE).replace(microsecond=123456) - datetime.timedelta(seconds=1)
    kenmerken = {"bronorganisatie": "082096752011", "objectType": "", "vertrouwelijk": "True"}
    for when, source in ((made.isoformat(), "zaken.example.nl"), (made.isoformat(), None)):
        message = notification(channel, when, kenmerken, source)
        publish(session, "notificaties", message)
        readable(delivered(callbacks, path, auth, "application/json", message | {"aanmaakdatum": utc(made)}))
    bare = "2026-01-01T00:00:00"  # of a client without zones
    message = notification(channel, bare, kenmerken)
    publish(session, "notificaties", message)
    at = callbacks.next(path)
    check("aanmaakdatum without a zone", json.loads(at[2])["aanmaakdatum"][:19], bare)
    callbacks.none_left(path)
    status, _ = session.json("POST", "notificaties", notification("nobody-knows-it", bare, {}))
    check("POST notificaties to a channel that there is not", status, 400)


def cloud_events(session, callbacks, path, auth):
    """Events as construct_cloudevent makes them."""
    event = {
        "id": str(uuid.uuid4()), "source": "urn:nld:oin:01823288444:zakensysteem", "specversion": "1.0",
        "type": "nl.overheid.zaken.zaak-geopend", "subject": "ddc6d192", "time": "2026-01-01T00:00:00Z",
        "dataref": "/zaken/ddc6d192", "datacontenttype": "application/json", "data": {"zaaktype": "https://x.example/1"},
    }
    kind = "application/cloudevents+json"
    publish(session, "cloudevents", event, kind=kind)
    delivered(callbacks, path, auth, kind, event)
    publish(session, "cloudevents", event, kind=kind)  # the client did not get the answer
    other = event | {"id": str(uuid.uuid4()), "data": None}
    publish(session, "cloudevents", other, kind=kind)
    delivered(callbacks, path, auth, kind, other)
    bare = event | {"id": str(uuid.uuid4()), "dataref": None, "data": None}
    publish(session, "cloudevents", bare, kind=kind)
    got = json.loads(callbacks.next(path)[2])
    check("a cloud event of which little was said", {k: v for k, v in got.items() if v is not None}, {k: v for k, v in bare.items() if v is not None})
    callbacks.none_left(path)


def play(root, client, secret):
    callbacks = Callbacks()
    page = callbacks.root + "/kanalen/"
    session = Session(root, "Bearer " + token(client, secret))
    check("GET the root of the API", session.call("GET", "")[0], 200)

    for name, wrong in {
        "no token": Session(root, None),
        "a token of another secret": Session(root, "Bearer " + token(client, secret + "x")),
        "a token of yesterday": Session(root, "Bearer " + token(client, secret, int(time.time()) - 13 * 60 * 60)),
    }.items():
        status, problem = wrong.json("GET", "kanaal?naam=zaken")
        check(f"GET kanaal with {name}: {problem}", status, 403)

    channel = "zaken-" + uuid.uuid4().hex[:8]
    filters = ["bronorganisatie"]
    how, first = register_channel(session, page, channel, filters)
    check("how a new channel is registered", how, "POST")
    filters = ["bronorganisatie", "object_type", "vertrouwelijk"]
    how, again = register_channel(session, page, channel, filters)
    check("how a channel that there is is registered", how, "PUT")
    check("the URL of a channel that was replaced", again["url"], first["url"])

    auth = "Bearer " + token(client, secret)
    register_subscription(session, callbacks, "/hook", {"kanalen": [{"naam": channel, "filters": {}}]}, auth)
    notifications(session, callbacks, channel, "/hook", auth)

    events = {"sendCloudevents": True, "cloudeventFilters": [{"typeSubstring": "overheid.zaken", "filters": {}}]}
    register_subscription(session, callbacks, "/events", events, auth)
    cloud_events(session, callbacks, "/events", auth)
    callbacks.none_left("/hook")


def main():
    if len(sys.argv) != 3 or not os.environ.get("CLIENT_SECRET"):
        sys.exit(__doc__)
    try:
        play(sys.argv[1], sys.argv[2], os.environ["CLIENT_SECRET"])
    except (Difference, OSError, KeyError, TypeError, ValueError) as e:
        sys.exit(f"client.py: {type(e).__name__}: {e}")
    print("client.py: no difference")


if __name__ == "__main__":
    main()
