"""Serves the files of the inspector page, with a content security policy."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from ...transport.server import HttpRequest, HttpResponse, NotFound, Route

PREFIX = "/inspector"
_PAGE = "index.html"
_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
# The page shows text that models wrote. Only its own scripts run, and text cannot become markup
# (trusted types).
POLICY = (
    "default-src 'none'; "
    "script-src 'self'; "
    "style-src 'self'; "
    "connect-src 'self'; "
    "img-src 'self' data:; "
    "base-uri 'none'; "
    "form-action 'none'; "
    "frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    # The browser checks the etag at every load, so the page is never older than the gateway.
    "cache-control": "no-cache",
}


class PageFile(NamedTuple):
    """A static file of the inspector, ready to be sent."""

    body: bytes
    etag: str
    content_type: str


def routes() -> list[Route]:
    """The page and its files. Their links are relative, so a reverse proxy may add a path prefix."""
    return [
        Route("GET", PREFIX, _page),
        Route("GET", PREFIX + "/", _redirect_without_slash),
        Route("GET", PREFIX + "/{file}", _file),
    ]


def is_page(path: str) -> bool:
    """Is this a file of the page? It holds no data, so it loads without a key. The page asks for the key."""
    return path == PREFIX or path.startswith(PREFIX + "/")


@cache
def page_files() -> dict[str, PageFile]:
    """All files by name, read once."""
    found: dict[str, PageFile] = {}
    for item in files("dragoman").joinpath("observe", "inspector").iterdir():
        content_type = _TYPES.get(item.name.rpartition(".")[2])
        if content_type is not None:
            body = item.read_bytes()
            found[item.name] = PageFile(body, hashlib.sha256(body).hexdigest()[:32], content_type)
    return found


async def _page(request: HttpRequest) -> HttpResponse:
    return _file_response(request, page_files()[_PAGE])


async def _redirect_without_slash(request: HttpRequest) -> HttpResponse:
    return HttpResponse(status=308, headers={"location": "../inspector"})


async def _file(request: HttpRequest) -> HttpResponse:
    file = page_files().get(request.parts["file"])
    if file is None:
        raise NotFound
    return _file_response(request, file)


def _file_response(request: HttpRequest, file: PageFile) -> HttpResponse:
    headers = {**_HEADERS, "etag": f'"{file.etag}"'}
    known = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
    if headers["etag"] in known or "*" in known:
        return HttpResponse(status=304, headers=headers)
    return HttpResponse(file.body, content_type=file.content_type, headers=headers)
