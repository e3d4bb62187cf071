"""One plain HTTP request, without an SDK."""

import http.client
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Got:
    status: int
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def call(url: str, method: str = "GET", body: Any = None, **headers: str) -> Got:
    """Header names are written with underscores. A body that is not bytes is sent as JSON."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=10)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    if data is not None:
        named = {"content-type": "application/json", **named}
    try:
        connection.request(method, f"{parts.path}?{parts.query}".rstrip("?"), data, named)
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        return Got(response.status, found, response.read())
    finally:
        connection.close()


def post(url: str, body: Any, **headers: str) -> Got:
    return call(url, "POST", body, **headers)
