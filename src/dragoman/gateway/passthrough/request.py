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


class PassedRequest:
    """One request that passes as it is."""

    def __init__(self, http: HttpRequest, client: ClientProtocol, endpoint: OtherEndpoint, root: str) -> None:
        """`root` is the part of the path that `endpoint.path` comes after."""
        self._http = http
        self._client = client
        self.endpoint = endpoint
        self._root = root
        self.body = b""
        """Only of a request that names a model. Any other body is sent on while it arrives."""
        self.model = ""

    @property
    def content_type(self) -> str:
        return self._http.headers.get("content-type", "")

    def url(self, choice: ChosenTarget) -> str:
        """The upstream's URL. The client's path may have another root, or name another model."""
        http, endpoint = self._http, self.endpoint
        path = http.path[len(self._root) :]
        if endpoint.model == "path":
            at = compiled(endpoint.path).fullmatch(path)
            assert at is not None  # the route matched
            path = path[: at.start("model")] + choice.model + path[at.end("model") :]
        upstream, before, tail = choice.upstream, endpoint.before, quote(path, safe=_IN_PATH)
        version = self._root.removeprefix(before) or upstream_protocol(self._client.name).address.version
        below = before + version + tail
        if upstream.hosting is not None:
            below = upstream.hosting.other_path(tail, upstream.fields(choice.model))
        url = upstream.url(below)
        asked = http.target.partition("?")[2]
        # A key in the query is the client's own, and not for the upstream.
        query = urlencode([(name, value) for name, value in parse_qsl(asked, True) if name != "key"])
        return f"{url}{'&' if '?' in url else '?'}{query}" if query else url

    def body_for(self, choice: ChosenTarget, max_upload: int) -> bytes | Upload:
        """The body for one target. One that was read names the model; others are sent on."""
        http, endpoint = self._http, self.endpoint
        if not endpoint.model:
            if not http.has_body:
                return b""
            length = http.headers.get("content-length")
            return Upload(http.chunks(max_upload), int(length) if length else None)
        if choice.model == self.model:
            return self.body
        prefix = self._client.listing.prefix
        return with_model_name(
            self.body, self.content_type, choice.model, within=endpoint.within, prefix=prefix
        )

    def headers(self, *, uploads: bool) -> dict[str, str]:
        """The client's headers for the upstream. `uploads`: the body is sent on as it is encoded."""
        given, client = self._http.headers, self._client
        # The body is of the client's version of the protocol. The keyring adds the beta features.
        names = [*_ASKED, *(name for name in client.open_headers if name != client.beta_header)]
        names += ["content-encoding"] if uploads else []
        passed = {name: given[name] for name in names if name in given}
        if prefixes := client.endpoints.passed_headers:
            passed |= {name: value for name, value in given.items() if name.startswith(prefixes)}
        return passed
