"""What the upstream gets of a request that passes as it is: the URL, the body, and the client's headers."""

from __future__ import annotations

from urllib.parse import parse_qsl, quote, urlencode

from ...protocols.base import ClientProtocol
from ...protocols.facts import OtherEndpoint
from ...protocols.registry import upstream_protocol
from ...routing.router import ChosenTarget
from ...transport.client import Upload
from ...transport.server import HttpRequest, compiled
from .named_model import with_model_name

_ASKED = ("accept", "content-type", "range")
"""The client's headers that pass to the upstream."""
_IN_PATH = "/:@!$&'()*+,;=~"


def passed_url(
    http: HttpRequest, client: ClientProtocol, endpoint: OtherEndpoint, root: str, choice: ChosenTarget
) -> str:
    """The upstream's URL. The client's path may have another root, or name another model."""
    path = http.path[len(root) :]
    if endpoint.model == "path":
        at = compiled(endpoint.path).fullmatch(path)
        assert at is not None  # the route matched
        path = path[: at.start("model")] + choice.model + path[at.end("model") :]
    upstream, before, tail = choice.upstream, endpoint.before, quote(path, safe=_IN_PATH)
    version = root.removeprefix(before) or upstream_protocol(client.name).address.version
    below = before + version + tail
    if upstream.hosting is not None:
        below = upstream.hosting.other_path(tail, upstream.fields(choice.model))
    url = upstream.url(below)
    asked = http.target.partition("?")[2]
    # A key in the query is the client's own, and not for the upstream.
    query = urlencode([(name, value) for name, value in parse_qsl(asked, True) if name != "key"])
    return f"{url}{'&' if '?' in url else '?'}{query}" if query else url


def passed_body(
    http: HttpRequest,
    client: ClientProtocol,
    endpoint: OtherEndpoint,
    choice: ChosenTarget,
    body: bytes,
    model: str,
    max_upload: int,
) -> bytes | Upload:
    """The body for one target. `body` was read, because it names the model `model`; others are sent on."""
    if not endpoint.model:
        if not http.has_body:
            return b""
        length = http.headers.get("content-length")
        return Upload(http.chunks(max_upload), int(length) if length else None)
    if choice.model == model:
        return body
    content_type = http.headers.get("content-type", "")
    return with_model_name(
        body, content_type, choice.model, within=endpoint.within, prefix=client.listing.prefix
    )


def passed_headers(http: HttpRequest, client: ClientProtocol, *, uploads: bool) -> dict[str, str]:
    """The client's headers for the upstream. `uploads`: the body is sent on as it is encoded."""
    given = http.headers
    # The body is of the client's version of the protocol. The keyring adds the beta features.
    names = [*_ASKED, *(name for name in client.open_headers if name != client.beta_header)]
    names += ["content-encoding"] if uploads else []
    passed = {name: given[name] for name in names if name in given}
    if prefixes := client.endpoints.passed_headers:
        passed |= {name: value for name, value in given.items() if name.startswith(prefixes)}
    return passed
