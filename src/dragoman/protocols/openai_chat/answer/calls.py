"""Assign the fragments of a Chat stream to tool calls, by id, by index, and by the call that is still open.

Each of these alone fails for some provider. Ollama sends no index, or index 0 for every call; new-api counts
from one; DeepSeek changes the index within a call. Ids come with the first fragment or with all. SGLang sends
names late; other servers repeat them with every fragment. So id, index and position are used together, and a
name or id is set once: OpenAI's SDK would concatenate repeated ones (`call_1call_1`).
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from ....wire.jsonscan import JsonScanner
from ...common.fields import Obj, is_object

# The names of servers for a call that the client runs. The server runs a call of any other type itself
# (xAI: `x_search_call`, Moonshot: `builtin_function`).
_CLIENT_TYPES = frozenset({"function", "custom", "tool", "tool_call", "tool_use", "function_call", "func"})


class Fragment(msgspec.Struct, gc=False):
    """An entry of `tool_calls`. `left` are its members that are not understood."""

    index: Any
    id: str
    name: str
    kind: str
    """Its `type`: `function`, `custom`, or a type of the server's own."""
    text: str
    left: Obj

    @property
    def begins(self) -> bool:
        """Does it name its call? Then it begins one, or it repeats the name."""
        return bool(self.name)


def read_fragment(entry: Obj) -> Fragment:
    """Take what is understood out of an entry. Some servers send an empty `custom` beside every function."""
    function, custom = entry.pop("function", None), entry.pop("custom", None)
    name, arguments = _taken(function, "arguments")
    called, given = _taken(custom, "input")
    for key, inner in (("function", function), ("custom", custom)):
        if inner and is_object(inner):
            entry[key] = inner
    kind = entry.pop("type", None)
    if called:
        kind = "custom"
    elif not isinstance(kind, str) or not kind or kind in _CLIENT_TYPES:
        kind = "function"
    id, index = entry.pop("id", None), entry.pop("index", None)
    text = given or arguments
    return Fragment(
        index=index,
        id=id if isinstance(id, str) else "",
        name=called or name,
        kind=kind,
        text=text if isinstance(text, str) else _as_text(text),
        left=entry,
    )


def _taken(inner: Any, text: str) -> tuple[str, Any]:
    """The name and the text of `function` or `custom`, taken out of it."""
    if not is_object(inner):
        return "", None
    name = inner.pop("name", None)
    return name if isinstance(name, str) else "", inner.pop(text, None)


class StreamedCall:
    """A call while it arrives. It gets a block when its name is known."""

    __slots__ = ("_scanned", "_scanner", "block", "id", "kind", "left", "name", "pieces", "replayed")

    def __init__(self, id: str, name: str, kind: str, left: Obj) -> None:
        self.replayed = False
        """The call reuses the index of a complete call. It may be that call, sent twice."""
        self.id = id
        self.name = name
        self.kind = kind
        self.left = left
        """The members of its first entry that are not understood. Google's Chat endpoint puts the signature
        of a call into `extra_content`."""
        self.block = -1
        self.pieces: list[str] = []
        """The fragments of the arguments so far. They wait here until the name comes.

        The tool stage keeps them, too (`tools/arguments/fragments.py`). This list is needed, because
        `complete` is computed before a fragment has a block, and scanning every fragment would cost more.
        """
        self._scanned = 0
        self._scanner: JsonScanner | None = None

    @property
    def complete(self) -> bool:
        """Are the arguments so far a complete JSON value? Computed only for ambiguous fragments."""
        self._scanner = self._scanner or JsonScanner()
        if self._scanned < len(self.pieces):
            self._scanner.feed("".join(self.pieces[self._scanned :]))
            self._scanned = len(self.pieces)
        return self._scanner.state == "complete"


class FragmentRouter:
    """Keeps the calls of one answer, and assigns fragments to them."""

    __slots__ = ("_by_id", "_by_index", "_named_again", "all")

    def __init__(self) -> None:
        self._named_again: dict[int | None, StreamedCall] = {}
        """Complete calls whose name came again without arguments. The next JSON object starts a new call."""
        self.all: list[StreamedCall] = []
        self._by_id: dict[str, StreamedCall] = {}
        self._by_index: dict[int, StreamedCall] = {}

    def continued(self, entry: Any) -> StreamedCall | None:
        """The call that an entry with nothing but an index and arguments continues: nearly all entries."""
        if type(entry) is not dict or len(entry) != 2:  # pyright: ignore[reportUnknownArgumentType]
            return None
        given = cast("Obj", entry)
        index, function = given.get("index"), given.get("function")
        if type(index) is not int or type(function) is not dict or len(function) != 1:  # pyright: ignore[reportUnknownArgumentType]
            return None
        call, text = self._by_index.get(index), cast("Obj", function).get("arguments")
        if call is None or call.block < 0 or type(text) is not str or not text:
            return None
        call.pieces.append(text)
        return call

    def assign(self, fragment: Fragment, *, separate: bool = False) -> StreamedCall:
        """The call that `fragment` belongs to: a new one if it starts one.

        `separate`: the fragment is a complete call, like each entry of a whole body.
        """
        index = as_index(fragment.index)
        call = self._register(self._new(fragment), index) if separate else self._find(fragment, index)
        if fragment.text:
            call.pieces.append(fragment.text)
        return call

    def _find(self, fragment: Fragment, index: int | None) -> StreamedCall:
        id, name, text = fragment.id, fragment.name, fragment.text
        if not (id or name) and index is not None and index in self._by_index:
            return self._by_index[index]
        call = self._named_again.get(index) if not id or id in self._by_id else None
        name = name or (call.name if call is not None else "")
        call = call or self._known(id, index, name)
        if call is None or self._starts_new_call(call, name, text):
            earlier, call = call, self._new(fragment, name)
            self._named_again.pop(index, None)
            # If this server uses ids or indexes, a new call without a new one may be a repetition.
            call.replayed = (
                earlier is not None and not id and bool(earlier.id or self._by_index.keys() - {index})
            )
            return self._register(call, index)
        # Either a server that repeats the name in every fragment, or the start of another call of the same
        # tool. Only the next fragment shows which.
        if name and call.name and not text and call.complete:
            self._named_again[index] = call
            if index is not None:
                self._by_index.pop(index, None)
            return call
        # Set once: an empty name or id in a later fragment (a model behind Mistral) must not erase the first.
        call.name = call.name or name
        call.id = call.id or id
        if call.block < 0:  # the client has not got the call yet, so its members can still go with it
            call.left = {**fragment.left, **call.left}
            fragment.left = {}
        return self._register(call, index)

    def _register(self, call: StreamedCall, index: int | None) -> StreamedCall:
        if call.id:
            self._by_id[call.id] = call
        if index is not None:
            self._by_index[index] = call
        return call

    def _known(self, id: str, index: int | None, name: str) -> StreamedCall | None:
        if id and id in self._by_id:
            return self._by_id[id]
        at_index = self._by_index.get(index) if index is not None else None
        if id:
            # A new id starts a new call, even at a used index (ollama#15457), unless that call has no id yet.
            return at_index if at_index and not at_index.id and not at_index.complete else None
        if at_index:
            return at_index
        last = self.all[-1] if self.all else None
        if last is None:
            return None
        if name:
            same = not last.name or (index is None and last.name == name)
            return last if same and not last.complete else None
        # DeepSeek sends the start of a call with index 0 and the rest with index 1 (agno#8880).
        return None if index is not None and last.complete else last

    def _starts_new_call(self, call: StreamedCall, name: str, text: str) -> bool:
        """Does a repeated name start a new call? It does if a second JSON object follows a complete one."""
        return bool(name and call.name) and text.lstrip()[:1] == "{" and call.complete

    def _new(self, fragment: Fragment, name: str = "") -> StreamedCall:
        call = StreamedCall(fragment.id, fragment.name or name, fragment.kind, fragment.left)
        fragment.left = {}
        self.all.append(call)
        return call


def as_index(value: Any) -> int | None:
    # Some servers send the index as a string.
    if isinstance(value, str) and value.isdigit():
        return int(value)
    return value if type(value) is int else None


def is_further(index: Any) -> bool:
    """Is this the index of a further choice (`n > 1`)? OpenAI allows 128 choices."""
    return (as_index(index) or 0) in range(1, 128)


def _as_text(arguments: Any) -> str:
    """Arguments as text. Mistral's are an object, others send null."""
    return "" if arguments is None else msgspec.json.encode(arguments).decode()
