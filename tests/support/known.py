"""Is a request the same, read in one go or out of memory, as it is field by field, and for every upstream?"""

import json
from collections.abc import Callable
from typing import Any

import pytest

from dragoman.errors import BadRequest
from dragoman.messages import Request
from dragoman.protocols import recall
from dragoman.protocols.base import Target
from dragoman.protocols.history import History
from dragoman.protocols.registry import PROTOCOLS, protocol
from dragoman.store.lookups import Carriage, lookups
from dragoman.tools.circles import noticed

TARGETS = [Target(model="m", issuer="one"), Target(model="m", issuer="two", chat_compatible=True)]
WAYS: list[Callable[[Any], bytes]] = [
    lambda body: json.dumps(body).encode(),
    lambda body: json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode(),
    lambda body: json.dumps(body, indent=2).encode(),
]
PADDING = "as long as a prompt is, so that it is worth remembering. " * 12
TRICKY = 'He wrote "input":[{"type":"message"}], "messages":[{"role":"user"}] and \U0001f600, "\t\n'


def seen(data: bytes, client: str, path: str = "") -> tuple[Request | str, list[Any]]:
    """What is read, or the complaint, and what every upstream is then sent and told."""
    try:
        request = protocol(client).read_request(data, path)
    except BadRequest as error:
        return f"{error.path}: {error.message}", []
    if isinstance(request.messages, History) and request.messages.body is not None:
        assert b"".join(request.messages.body.pieces) == data
    carriages = [Carriage(client=client, issuer="one", asked=asked) for asked in (True, False)]
    wanted = [lookups(request.messages, carriage) for carriage in carriages]
    given = [sent(request, upstream, target) for upstream in PROTOCOLS for target in TARGETS]
    return request, [*given, wanted, noticed(request)]


def sent(request: Request, upstream: str, target: Target) -> Any:
    try:
        outgoing = protocol(upstream).write_request(request, target)
    except BadRequest as error:
        return f"{error.path}: {error.message}"
    return outgoing.body, json.loads(b"".join(outgoing.written())), outgoing.notices, outgoing.stop


def carefully(data: bytes, client: str, path: str = "") -> tuple[Request | str, list[Any]]:
    """The same, read field by field."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recall, "WORTH_IT", len(data) + 1)
        return seen(data, client, path)
