"""Facts about a protocol, in groups. A protocol's record holds one of each group that applies to it.

Everything here is data or a small pure function. Other layers look the facts up in the registry and never
name a protocol. The defaults are what most protocols do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ..model.messages import Part, Seal, Thinking, Tool
from ..wire.frames import Frame

Obj = dict[str, Any]
Headers = Mapping[str, str]
_VERSION = re.compile(r"/v\d+[a-z0-9]*(?=/|$)")


class Auth(msgspec.Struct, frozen=True):
    """The header in which a protocol's clients send their key."""

    header: str = "authorization"
    bearer_prefixes: tuple[str, ...] = ()
    """Keys that begin so are tokens from a sign-in. They go into `Authorization: Bearer` instead."""
    bearer_elsewhere: bool = False
    """Other providers that offer this protocol take their own keys as bearer tokens."""


BEARER = Auth()


def _nobody(path: str, headers: Headers) -> bool:
    return False


class Endpoints(msgspec.Struct, frozen=True, kw_only=True):
    """The paths at which the gateway answers a protocol's clients, as patterns of `http.server.Route`."""

    answers: tuple[str, ...]
    """Paths below a root to which clients post requests for an answer."""
    counts: tuple[str, ...] = ()
    """The same for requests to count tokens."""
    missing: tuple[str, ...] = ()
    """Paths below a root that look like the protocol's and get 404."""
    roots: tuple[str, ...] = ("/v1", "")
    """Base paths, the usual one first. Some clients leave out the version."""
    own: tuple[str, ...] = ()
    """Path prefixes that no other protocol's clients use, whatever headers they send."""
    claims: Callable[[str, Headers], bool] = _nobody
    """Does a request with this path and these headers come from a client of this protocol?"""
    wants_array: Callable[[Headers, Headers], bool] | None = None
    """Does a client with this query and these headers want its stream as one JSON array? None: never."""

    def paths(self, *below: str) -> list[str]:
        """Each path in `below` under each root."""
        return [root + path for root in self.roots for path in below]


class Compaction(msgspec.Struct, frozen=True, kw_only=True):
    """How a protocol's clients have a conversation replaced by a summary."""

    suffix: str
    """How the path that compacts ends, behind the path that answers."""
    trigger: str
    """The type of the item in a request that asks for compaction instead of an answer."""
    part: Callable[[str, str], Part]
    """The part of an answer that holds a summary (summary, seed of its id)."""
    asked: Callable[[Obj], Obj]
    """The body of an ordinary request, from the body of a request to compact."""
    answered: Callable[[Obj, Obj], Obj]
    """The body of the answer, from the client's body and the body of the ordinary answer."""


class SocketMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message that a client sent over a WebSocket: a request, or something that is answered at once."""

    lane: str | None = None
    """Requests of one lane are answered one after another, those of several lanes at the same time."""
    body: bytes = b""
    """The request as it would be posted."""
    headers: Headers = {}
    """Headers that this request has beside those of the connection."""
    generate: bool = True
    """False: the client only prepares the next request. No model is asked."""
    reply: bytes = b""
    """The message is no request that can be served. This is said to it."""


class SocketFormat(msgspec.Struct, frozen=True, kw_only=True):
    """How a protocol is spoken over a WebSocket at its `answers`: one message a request, one an event."""

    read_message: Callable[[bytes], SocketMessage]
    """What a client's message means."""
    event: Callable[[Frame, str | None], bytes]
    """One event of a streamed answer as a message of this lane; empty if there is nothing to say."""
    error: Callable[[bytes, int, Headers, str | None], bytes]
    """An error answer (its body, status, headers and lane) as a message."""


class Counting(msgspec.Struct, frozen=True, kw_only=True):
    """How a protocol counts a prompt's tokens."""

    suffix: str
    """How the path that counts ends. A suffix with a colon replaces the verb of the path that answers."""
    body: Callable[[Obj, str], Obj]
    """The body to post there, from the body of a request for an answer and the model's name."""
    asked: Callable[[Obj], Obj] = lambda body: body
    """The request that a client's body for counting asks about."""
    member: str = "input_tokens"
    """The member of the answer that holds the count."""
    around: Mapping[str, Any] = {}
    """Other members of the answer."""

    def path(self, answers: str) -> str:
        """The path that counts, from the path that answers."""
        path = answers.partition("?")[0]
        return (path.rpartition(":")[0] if self.suffix.startswith(":") else path) + self.suffix


def without(*names: str) -> Callable[[Obj, str], Obj]:
    """`Counting.body` for a protocol that refuses these members, which are about the answer."""
    return lambda body, model: {key: value for key, value in body.items() if key not in names}


def _every(entry: Obj) -> bool:
    return True


def _entry(name: str, title: str) -> Obj:
    return {"id": name, "object": "model", "created": 0, "owned_by": "dragoman"}


def _page(entries: list[Obj]) -> Obj:
    return {"object": "list", "data": entries}


class ModelListFormat(msgspec.Struct, frozen=True, kw_only=True):
    """How a protocol lists models."""

    path: str = "/v1/models"
    """Where an upstream is asked, from its root, for a page as long as possible."""
    member: str = "data"
    """The member of the list that holds the entries."""
    name: str = "id"
    """The member of an entry that holds the model's name."""
    prefix: str = ""
    """What stands before every name."""
    more: str = "has_more"
    """The member that is set if there is a further page."""
    answers: Callable[[Obj], bool] = _every
    """Is this entry a model that answers, not one that only embeds?"""
    entry: Callable[[str, str], Obj] = _entry
    """The entry for a model, by its name and title."""
    page: Callable[[list[Obj]], Obj] = _page
    """The list of these entries."""
    known: str = "gpt-5-mini"
    """A model that most servers of the protocol have."""


class ReasoningReplay(msgspec.Struct, frozen=True, kw_only=True):
    """What a protocol's clients send back of an earlier answer."""

    seals: bool = False
    """Signatures and encrypted reasoning come back as they were given."""
    thoughts: bool = False
    """Thoughts come back too, so they can carry the seals of other protocols."""
    call_ids: bool = True
    """Calls come back with their ids."""
    asked_for: Callable[[Obj], bool] | None = None
    """Does the client ask for reasoning in this body? Only such a client sends it back. None: never."""


def output_limiter(*members: str) -> Callable[[Obj, int, int | None], Obj]:
    """`OutputLimiter` for a protocol that says the longest answer in one of these members of the body."""
    return lambda body, most, budget: {
        **body,
        **{key: most for key in members if isinstance(body.get(key), int)},
    }


OutputLimiter = Callable[[Obj, int, int | None], Obj]
"""A client's body with at most so many output tokens and, if given, a new budget for reasoning."""


def _own_version(path: str, query: str) -> bool:
    return "api-version=" in query or _VERSION.search(re.sub(r"/v1(beta)?$", "", path)) is not None


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """How an upstream's base URL is understood."""

    endpoint: str
    """A regular expression for the end of a URL that is the whole endpoint, such as `/messages$`."""
    distinctive: bool = True
    """A URL that ends so is never one of another protocol's."""
    version: str = "/v1"
    """How the paths of requests begin. A base URL may end in it or not."""
    own_version: Callable[[str, str], bool] = _own_version
    """Do path and query of a base URL name another version, which replaces the protocol's?"""
    family: str = ""
    """Protocols of one family are offered at the same base URL."""


class ToolForm(msgspec.Struct, frozen=True, kw_only=True):
    """How a protocol defines a tool."""

    fits: Callable[[Obj], bool]
    """Is this definition written in exactly this protocol's form?"""
    read: Callable[[msgspec.Raw, str], Sequence[Tool]]
    """The tools in a definition, which is at this place of the request."""


def _as_it_is(value: Mapping[str, Any]) -> Mapping[str, Any]:
    return value


class Sdk(msgspec.Struct, frozen=True, kw_only=True):
    """How the objects of a protocol's SDK are recognised."""

    whole: Callable[[Obj, str], bool | None]
    """Is a frame (its JSON and the name of its event) a whole response of this protocol? False: it is the
    first frame of a stream. None: it belongs to another protocol."""
    on_wire: Callable[[Mapping[str, Any]], Mapping[str, Any]] = _as_it_is
    """An SDK's dump with the wire's own names. Other dumps stay as they are."""


def _sign(parts: Sequence[Part], thought: str, seal: Seal) -> list[Part]:
    return [Thinking(thought, seal), *parts]


def _bare_seal(data: str, seed: str) -> tuple[str, str | None]:
    return data, None


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """How a protocol's own servers behave: the scripted model plays one."""

    call_ids: str = "call_"
    """How the ids of calls begin."""
    id_header: str = "x-request-id"
    """The header that names an answer; empty for none."""
    objects_in_bodies: bool = False
    """Arguments are an object in a body, not text."""
    whole_calls: bool = False
    """A call comes whole, in one frame, and its arguments are an object there too."""
    keeps_cut_calls: bool = False
    """A call that was cut off stands in a body with half its arguments."""
    overloaded: int = 529
    """The status of an overloaded server."""
    first_frame: Callable[[str, str, int], bytes] | None = None
    """Where a stream can begin with a frame without content: that frame, from the model, the answer's id and
    the prompt's tokens."""
    retry_details: tuple[Obj, ...] = ()
    """What the error of a rate limit says about a wait of one second."""
    block: Callable[[Obj], int | None] | None = None
    """The block that a frame belongs to. None: blocks never interleave."""
    numbered: Callable[[Obj, int], Obj] | None = None
    """A frame with its number in the stream, where frames are numbered."""
    seal: Callable[[str, str], tuple[str, str | None]] = _bare_seal
    """Data and id of a seal, from its bytes as base64 and the answer's seed."""
    sign: Callable[[Sequence[Part], str, Seal], list[Part]] = _sign
    """The parts of an answer with a thought before them, and the seal where the protocol puts it."""
    wants_seals: bool = True
    """A history that lost its seals is refused."""
