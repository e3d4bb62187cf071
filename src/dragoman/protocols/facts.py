"""Facts about a protocol, in groups. A protocol's record holds the groups that apply to it.

All facts are data or small pure functions. Other packages look them up in the registry and never name a
protocol. Each default is the value of most protocols.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

import msgspec

from ..model.events import NO_USAGE, Usage
from ..model.messages import Part, Seal, Thinking, Tool
from ..wire.arrays import ArrayWriter
from ..wire.frames import Frame

Obj = dict[str, Any]
Headers = Mapping[str, str]
_VERSION = re.compile(r"/v\d+[a-z0-9]*(?=/|$)")


FieldNames = Mapping[str, tuple[str, ...]]
"""Fields of a protocol's requests (`a.b` is `b` inside `a`), and the parts of the neutral request in each:
`messages`, `system`, `tools`, `model`, `stream`, or the name of a setting."""
IN_PATH = "(URL)"
"""In place of a field, for what a protocol has in the path of a request."""


class CacheMark(msgspec.Struct, frozen=True):
    """How a request marks the end of what the upstream should cache."""

    member: str
    alone: bool = False
    """The mark is a block of its own. Otherwise it is a member of any block."""
    seconds: int = 300
    """The lifetime of a mark without a `ttl`."""


class PromptForm(msgspec.Struct, frozen=True):
    """How a request holds its prompt, for fingerprints of prompts (`observe/caching/fingerprints.py`)."""

    marks: tuple[CacheMark, ...] = ()
    tool: str = ""
    """The member of a tool that holds its name. Empty: the tool itself holds it."""
    tools: str = ""
    """The member of an entry of the tool list that holds several tools."""


class Auth(msgspec.Struct, frozen=True):
    """How a protocol's clients send their key."""

    header: str = "authorization"
    bearer_prefixes: tuple[str, ...] = ()
    """Prefixes of OAuth tokens. Such a key goes into `Authorization: Bearer`, not into `header`."""
    bearer_elsewhere: bool = False
    """Other providers of this protocol expect their keys as bearer tokens."""


BEARER = Auth()


class StreamWriter(Protocol):
    """Writes server-sent events in another framing. `feed` takes whole events; `close` ends the stream."""

    content_type: str

    def feed(self, data: bytes) -> bytes: ...

    def close(self) -> bytes: ...


def _never(path: str, headers: Headers) -> bool:
    return False


def _no_usage(body: bytes) -> Usage:
    return NO_USAGE


class OtherEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint beside answers. Its requests and their answers pass as they are."""

    name: str
    """What the key `other_endpoints` of an upstream calls it. Several paths may share a name."""
    path: str
    """A pattern below a root, like those of `Endpoints`."""
    methods: tuple[str, ...] = ("POST",)
    model: Literal["body", "path", ""] = ""
    """Where the model's name is: in the member `model` of a JSON body, or the field of that name of a form;
    in the part `{model}` of the path; or nowhere."""
    within: str = ""
    """A member of the body with a list of requests, which name the model, too."""
    before: str = ""
    """What the path has before its root: `/upload/v1beta/files`."""
    links: tuple[str, ...] = ()
    """Members of the answer with URLs of the upstream that the client asks next. They become URLs of the
    gateway: the client's key is not for the upstream."""
    names: tuple[str, ...] = ()
    """Members of the answer that name what stays at the upstream, such as `id` or `file.name`. An entry of a
    list has the first of them."""
    listed: str = ""
    """The member with the entries, in the answer to a GET of the endpoint that names none of them."""
    paid_later: bool = False
    """A POST starts work at the upstream. No answer to it says what the work costs."""
    usage: Callable[[bytes], Usage] = _no_usage
    """The token counts in an answer."""


class Endpoints(msgspec.Struct, frozen=True, kw_only=True):
    """The paths that the gateway serves for a protocol, as patterns of `transport/server/routes.py`."""

    answers: tuple[str, ...]
    """Paths below a root for requests for an answer."""
    counts: tuple[str, ...] = ()
    """Paths below a root for requests to count tokens."""
    missing: tuple[str, ...] = ()
    """Paths below a root that belong to the protocol but get 404."""
    others: tuple[OtherEndpoint, ...] = ()
    """Endpoints whose requests pass to an upstream of the same protocol."""
    passed_headers: tuple[str, ...] = ()
    """Prefixes of the names of headers that `others` need. They pass in both directions."""
    link_headers: tuple[str, ...] = ()
    """Headers of their answers that hold URLs, as `OtherEndpoint.links` do."""
    roots: tuple[str, ...] = ("/v1", "")
    """Base paths, the usual one first. Some clients leave out the version."""
    own: tuple[str, ...] = ()
    """Path prefixes that only this protocol uses, regardless of headers."""
    claims: Callable[[str, Headers], bool] = _never
    """Do this path and these headers belong to a client of this protocol?"""
    reframes: Callable[[Headers, Headers], bool] | None = None
    """Do this query and these headers ask for the stream in another framing than SSE? None: never."""
    writer: Callable[[], StreamWriter] = ArrayWriter
    """Makes the writer of that framing."""

    def paths(self, *below: str) -> list[str]:
        """Each path in `below` under each root."""
        return [root + path for root in self.roots for path in below]


class Compaction(msgspec.Struct, frozen=True, kw_only=True):
    """How a protocol's clients ask for compaction: a summary that replaces the conversation."""

    suffix: str
    """The path suffix of the compaction endpoint, after the path for answers."""
    trigger: str
    """The type of the item in a request that asks for compaction instead of an answer."""
    part: Callable[[str, str], Part]
    """Builds the answer's part for a summary (summary, seed of its id)."""
    to_request: Callable[[Obj], Obj]
    """Turns the body of a compaction request into the body of an ordinary request."""
    to_answer: Callable[[Obj, Obj], Obj]
    """Builds the compaction answer from the client's body and the body of the ordinary answer."""


class SocketMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A client's message on a WebSocket: a request, or a message with an immediate reply."""

    lane: str | None = None
    """Requests of one lane run one after another. Requests of different lanes run in parallel."""
    body: bytes = b""
    """The request as the body of a POST."""
    headers: Headers = {}
    """Headers of this request, in addition to those of the connection."""
    generate: bool = True
    """False: the client only prepares its next request. The gateway asks no model."""
    previous: str | None = None
    """The response that the request continues."""
    reply: bytes = b""
    """The immediate reply, if the message is not a valid request."""


class SocketFormat(msgspec.Struct, frozen=True, kw_only=True):
    """The messages of a WebSocket at the paths `answers`: one per request, one per event."""

    read_message: Callable[[bytes], SocketMessage]
    """Reads a client's message."""
    event: Callable[[Frame, str | None], bytes]
    """Writes one event of an answer as a message of this lane. Empty: send no message."""
    error: Callable[[bytes, int, Headers, str | None], bytes]
    """Writes an error answer (body, status, headers, lane) as a message."""


class Counting(msgspec.Struct, frozen=True, kw_only=True):
    """How a protocol counts a prompt's tokens."""

    suffix: str
    """The path suffix of the counting endpoint. One with a colon replaces the verb of the answer path."""
    body: Callable[[Obj, str], Obj]
    """Builds the body for counting from the body of a request for an answer and the model's name."""
    to_request: Callable[[Obj], Obj] = lambda body: body
    """Turns a client's body for counting into the body of a request for an answer."""
    member: str = "input_tokens"
    """The member of the answer that holds the count."""
    around: Mapping[str, Any] = {}
    """The other members of the answer."""

    def path(self, answers: str) -> str:
        """The counting path that belongs to the answer path `answers`."""
        path = answers.partition("?")[0]
        return (path.rpartition(":")[0] if self.suffix.startswith(":") else path) + self.suffix


def without(*names: str) -> Callable[[Obj, str], Obj]:
    """A `Counting.body` that removes these members: the counting endpoint rejects them."""
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
    """The path of the list below the upstream's root, with the largest page size."""
    member: str = "data"
    """The member of the list that holds the entries."""
    name: str = "id"
    """The member of an entry that holds the model's name."""
    prefix: str = ""
    """The prefix of every name in the list (Gemini: `models/`)."""
    more: str = "has_more"
    """The member that is set if there is another page."""
    answers: Callable[[Obj], bool] = _every
    """Does this model generate answers? Google also lists embedding models."""
    entry: Callable[[str, str], Obj] = _entry
    """Writes the entry of a model from its name and title."""
    page: Callable[[list[Obj]], Obj] = _page
    """Writes the list from its entries."""
    known: str = "gpt-5-mini"
    """A model that most servers of the protocol offer."""


class ReasoningReplay(msgspec.Struct, frozen=True, kw_only=True):
    """Which parts of an earlier answer a protocol's clients send back."""

    seals: bool = False
    """Clients send signatures and encrypted reasoning back unchanged."""
    thoughts: bool = False
    """Clients send thoughts back, so a thought can carry the seal of another protocol."""
    call_ids: bool = True
    """Clients send calls back with their ids."""
    asked_for: Callable[[Obj], bool] | None = None
    """Does this body ask for reasoning? Only a client that asks sends it back. None: never."""


def output_limiter(*members: str) -> Callable[[Obj, int, int | None], Obj]:
    """An `OutputLimiter` for a protocol whose output limit is in one of these members of the body."""
    return lambda body, most, budget: {
        **body,
        **{key: most for key in members if isinstance(body.get(key), int)},
    }


OutputLimiter = Callable[[Obj, int, int | None], Obj]
"""Changes the output limit in a client's body, and the reasoning budget unless it is None."""


def _own_version(path: str, query: str) -> bool:
    return "api-version=" in query or _VERSION.search(re.sub(r"/v1(beta)?$", "", path)) is not None


class BaseUrlRule(msgspec.Struct, frozen=True, kw_only=True):
    """How to read an upstream's base URL."""

    endpoint: str
    """A regular expression for the end of a URL that names the endpoint itself, such as `/messages$`."""
    distinctive: bool = True
    """No other protocol has URLs with this end."""
    version: str = "/v1"
    """The version prefix of request paths. A base URL may end with it."""
    own_version: Callable[[str, str], bool] = _own_version
    """Do the path and query of a base URL name a version of their own, instead of the protocol's?"""
    family: str = ""
    """Protocols of one family share a base URL."""


class ToolForm(msgspec.Struct, frozen=True, kw_only=True):
    """How a protocol defines a tool."""

    fits: Callable[[Obj], bool]
    """Does this definition have exactly this protocol's form?"""
    read: Callable[[msgspec.Raw, str], Sequence[Tool]]
    """Reads the tools in a definition. The second argument is its path in the request."""


def _unchanged(value: Mapping[str, Any]) -> Mapping[str, Any]:
    return value


class SdkObjects(msgspec.Struct, frozen=True, kw_only=True):
    """How to recognise the objects of a protocol's SDK."""

    whole: Callable[[Obj, str], bool | None]
    """Is this frame (its JSON and its event name) a whole response of this protocol? False: it is the first
    frame of a stream. None: it belongs to another protocol."""
    on_wire: Callable[[Mapping[str, Any]], Mapping[str, Any]] = _unchanged
    """Renames the members of an SDK object's dump to the names on the wire, if they differ."""


def _sign(parts: Sequence[Part], thought: str, seal: Seal) -> list[Part]:
    return [Thinking(thought, seal), *parts]


def _bare_seal(data: str, seed: str) -> tuple[str, str | None]:
    return data, None


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """How the provider's own server behaves. The scripted model (`conform/scripted/`) imitates it."""

    call_ids: str = "call_"
    """The prefix of call ids."""
    id_header: str = "x-request-id"
    """The header with the request id. Empty: none."""
    objects_in_bodies: bool = False
    """In a body, arguments are an object, not text."""
    whole_calls: bool = False
    """A stream sends each call in one frame, with an object as arguments."""
    keeps_cut_calls: bool = False
    """A body contains a cut call with incomplete arguments."""
    overloaded: int = 529
    """The HTTP status of an overloaded server."""
    first_frame: Callable[[str, str, int], bytes] | None = None
    """Writes a first frame without content from the model, the answer's id and the prompt tokens. None: the
    protocol has no such frame."""
    retry_details: tuple[Obj, ...] = ()
    """The details of a rate-limit error that asks for a wait of one second."""
    block: Callable[[Obj], int | None] | None = None
    """The block number in a frame. None: blocks never interleave."""
    numbered: Callable[[Obj, int], Obj] | None = None
    """Puts the sequence number into a frame. None: frames have no numbers."""
    seal: Callable[[str, str], tuple[str, str | None]] = _bare_seal
    """Data and id of a seal, from base64 data and the seed of the answer."""
    sign: Callable[[Sequence[Part], str, Seal], list[Part]] = _sign
    """Puts a thought before the parts of an answer, and the seal where the protocol has it."""
    wants_seals: bool = True
    """The server refuses a history without the seals it issued."""
