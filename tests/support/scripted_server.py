"""An HTTP server on loopback that replays scripted answers, for SDKs with their own connections.

It records the requests.
"""

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from dragoman.conform.shape import Json


@dataclass(frozen=True, slots=True)
class Asked:
    path: str
    body: Json


Model = Callable[[Asked], bytes]


class ScriptedServer:
    """Answers come from `replies`, one per request, and then from `model`.

    A reply that begins like a JSON object is a body, any other is a stream. Streams are sent in pieces of
    `piece` bytes, so that frames arrive cut.
    """

    def __init__(self, piece: int = 61) -> None:
        self.replies: deque[bytes] = deque()
        self.model: Model | None = None
        self.asked: list[Asked] = []
        self.piece = piece
        self.cut_after: int | None = None
        """After this many replies, the server announces more bytes than it sends: the connection is cut."""
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def script(self, *replies: bytes) -> None:
        self.replies.extend(replies)

    def answer(self, asked: Asked) -> bytes:
        self.asked.append(asked)
        if self.replies:
            return self.replies.popleft()
        assert self.model is not None, f"nothing is scripted for {asked}"
        return self.model(asked)

    def serve(self) -> None:
        self._http.serve_forever(poll_interval=0.01)

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        script = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                reply = script.answer(Asked(self.path, json.loads(body)))
                is_body = reply.startswith(b"{")
                self.send_response(200)
                self.send_header("content-type", "application/json" if is_body else "text/event-stream")
                if script.cut_after is not None and len(script.asked) > script.cut_after:
                    self.send_header("content-length", str(len(reply) + 1))
                self.end_headers()
                for start in range(0, len(reply), script.piece):
                    self.wfile.write(reply[start : start + script.piece])

            def log_message(self, format: str, *args: object) -> None:
                """Do not log to stderr."""

        return Handler


@contextmanager
def scripted_server() -> Iterator[ScriptedServer]:
    server = ScriptedServer()
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()
