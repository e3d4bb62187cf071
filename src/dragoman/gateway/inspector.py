"""The inspector's page: files of the package, read once, and a policy under which nothing foreign can run."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from ..transport.server import HttpRequest, HttpResponse, NotFound, Route

PREFIX = "/inspector"
_PAGE = "index.html"
_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
# What a model wrote is on this page. Scripts are ours alone, and no text can become markup (trusted types).
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
    # Asked about at every load, sent once: a newer gateway never meets an older page.
    "cache-control": "no-cache",
}


class File(NamedTuple):
    """One file of the page."""

    body: bytes
    etag: str
    content_type: str


def routes() -> list[Route]:
    """The page and its files. Addresses in them are relative, so a proxy may serve them below a path."""
    return [
        Route("GET", PREFIX, _page),
        Route("GET", PREFIX + "/", _without_slash),
        Route("GET", PREFIX + "/{file}", _file),
    ]


def is_page(path: str) -> bool:
    """The page itself holds nothing of anybody's: it loads without a key, and asks for one."""
    return path == PREFIX or path.startswith(PREFIX + "/")


@cache
def page_files() -> dict[str, File]:
    """Every file, by name."""
    found: dict[str, File] = {}
    for item in files("dragoman").joinpath("observe", "inspector").iterdir():
        content_type = _TYPES.get(item.name.rpartition(".")[2])
        if content_type is not None:
            body = item.read_bytes()
            found[item.name] = File(body, hashlib.sha256(body).hexdigest()[:32], content_type)
    return found


async def _page(request: HttpRequest) -> HttpResponse:
    return _sent(request, page_files()[_PAGE])


async def _without_slash(request: HttpRequest) -> HttpResponse:
    return HttpResponse(status=308, headers={"location": "../inspector"})


async def _file(request: HttpRequest) -> HttpResponse:
    file = page_files().get(request.parts["file"])
    if file is None:
        raise NotFound
    return _sent(request, file)


def _sent(request: HttpRequest, file: File) -> HttpResponse:
    headers = {**_HEADERS, "etag": f'"{file.etag}"'}
    known = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
    if headers["etag"] in known or "*" in known:
        return HttpResponse(status=304, headers=headers)
    return HttpResponse(file.body, content_type=file.content_type, headers=headers)
