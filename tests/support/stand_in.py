"""A local server in the place of a cloud: it keeps what it is sent, and answers what a test tells it."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Sent:
    """A request as it was on the wire."""

    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Answer:
    body: bytes
    kind: str = "application/json"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    """Close the connection before the announced end."""


def as_json(value: Any, status: int = 200, **headers: str) -> Answer:
    return Answer(json.dumps(value).encode(), status=status, headers=headers)


def events(*frames: tuple[str, Any]) -> Answer:
    """Server-sent events."""
    lines = (f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in frames)
    return Answer("".join(lines).encode(), "text/event-stream")


@dataclass
class StandIn:
    answer: Callable[[Sent], Answer]
    url: str = ""
    sent: list[Sent] = field(default_factory=list)

    @property
    def only(self) -> Sent:
        """The one request since the last look."""
        assert len(self.sent) == 1, [request.path for request in self.sent]
        return self.sent.pop()


@contextmanager
def standing_in(answer: Callable[[Sent], Answer]) -> Iterator[StandIn]:
    place = StandIn(answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Sent(self.command, self.path, headers, self._body(headers))
            place.sent.append(request)
            given = place.answer(request)
            self.send_response(given.status)
            for name, value in {"content-type": given.kind, **given.headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(given.body) + given.cut))
            self.end_headers()
            self.wfile.write(given.body)
            self.close_connection = given.cut

        do_GET = do_PUT = do_DELETE = do_POST  # noqa: N815

        def _body(self, headers: dict[str, str]) -> bytes:
            if headers.get("transfer-encoding") != "chunked":
                return self.rfile.read(int(headers.get("content-length", 0)))
            whole = b""
            while size := int(self.rfile.readline(), 16):
                whole += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return whole

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    place.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield place
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
