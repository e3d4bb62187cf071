"""The inspector's page: files of the package, read once, and a policy under which nothing foreign can run."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from aiohttp import web

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
    "x-content-type-options": "nosniff",
    # Asked about at every load, sent once: a newer gateway never meets an older page.
    "cache-control": "no-cache",
}


class File(NamedTuple):
    """One file of the page."""

    body: bytes
    etag: str
    content_type: str


def routes() -> list[web.RouteDef]:
    """The page and its files. Addresses in them are relative, so a proxy may serve them below a path."""
    return [
        web.get(PREFIX, _page),
        web.get(PREFIX + "/", _without_slash),
        web.get(PREFIX + "/{file}", _file),
    ]


def is_page(path: str) -> bool:
    """The page itself holds nothing of anybody's: it loads without a key, and asks for one."""
    return path == PREFIX or path.startswith(PREFIX + "/")


@cache
def page_files() -> dict[str, File]:
    """Every file, by name."""
    found: dict[str, File] = {}
    for item in files("dragoman").joinpath("inspector").iterdir():
        content_type = _TYPES.get(item.name.rpartition(".")[2])
        if content_type is not None:
            body = item.read_bytes()
            found[item.name] = File(body, hashlib.sha256(body).hexdigest()[:32], content_type)
    return found


async def _page(request: web.Request) -> web.Response:
    return _sent(request, page_files()[_PAGE])


async def _without_slash(request: web.Request) -> web.Response:
    return web.Response(status=308, headers={"location": "../inspector"})


async def _file(request: web.Request) -> web.Response:
    file = page_files().get(request.match_info["file"])
    if file is None:
        raise web.HTTPNotFound
    return _sent(request, file)


def _sent(request: web.Request, file: File) -> web.Response:
    known = request.if_none_match or ()
    if any(tag.value in (file.etag, "*") for tag in known):
        response = web.Response(status=304, headers=_HEADERS)
    else:
        response = web.Response(body=file.body, headers={**_HEADERS, "content-type": file.content_type})
    response.etag = file.etag
    return response
