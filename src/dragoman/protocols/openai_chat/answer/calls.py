"""Which call does a fragment belong to? By id, then index, then "the one that is open", together.

Each alone is wrong at some provider (protocols.md 4.3): no index, every call index 0, indexes that begin
at one, ids only on the first fragment or on all, ids that change, names that come late or every time.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ....wire.jsonscan import JsonScanner
from .wire import Call, Custom, Function

# What servers call a function. A call of any other type (`x_search_call`, `builtin_function`) is theirs.
_CLIENT_TYPES = frozenset({"function", "custom", "tool", "tool_call", "tool_use", "function_call", "func"})


class StreamedCall:
    """A call as far as it has come. It gets its block when its name is known."""

    __slots__ = ("_scanned", "_scanner", "block", "extra", "id", "kind", "name", "pieces", "replayed")

    def __init__(self, id: str, name: str, kind: str) -> None:
        self.replayed = False
        """It took the place of a whole call: it may be that call, sent a second time."""
        self.extra: Any = None
        """`extra_content`, where a server signs its calls."""
        self.id = id
        self.name = name
        self.kind = kind
        self.block = -1
        self.pieces: list[str] = []
        """The arguments so far. They wait here until the name comes."""
        self._scanned = 0
        self._scanner: JsonScanner | None = None

    @property
    def complete(self) -> bool:
        """Are the arguments so far a whole JSON value? Looked at only when a fragment is ambiguous."""
        self._scanner = self._scanner or JsonScanner()
        if self._scanned < len(self.pieces):
            self._scanner.feed("".join(self.pieces[self._scanned :]))
            self._scanned = len(self.pieces)
        return self._scanner.state == "complete"


class CallTracker:
    """The calls of one answer."""

    __slots__ = ("_by_id", "_by_index", "_named_again", "all")

    def __init__(self) -> None:
        self._named_again: dict[int | None, StreamedCall] = {}
        """Whole calls whose name came once more, without arguments: the next object begins a new call."""
        self.all: list[StreamedCall] = []
        self._by_id: dict[str, StreamedCall] = {}
        self._by_index: dict[int, StreamedCall] = {}

    def assign(self, fragment: Call, alone: bool = False) -> tuple[StreamedCall, str]:
        """The call that `fragment` belongs to, a new one if it begins one, and the text it adds.

        `alone`: it is a call of its own, as each entry of a whole body is.
        """
        function, index = fragment.function, fragment.index
        if function is not None and fragment.custom is None:
            name, text = function.name, function.arguments
        else:
            name, text = _name_and_text(fragment)
        if type(text) is not str:
            text = _as_text(text)
        if alone:
            call = self._register(self._new(fragment.id or "", name or "", fragment), as_index(index))
        elif fragment.id or name or type(index) is not int or index not in self._by_index:
            call = self._find(fragment, as_index(index), name or "", text)
        else:
            call = self._by_index[index]  # what nearly all fragments are
        if text:
            call.pieces.append(text)
        return call, text

    def _find(self, fragment: Call, index: int | None, name: str, text: str) -> StreamedCall:
        id = fragment.id or ""
        call = self._named_again.get(index) if not id or id in self._by_id else None
        name = name or (call.name if call is not None else "")
        call = call or self._known(id, index, name)
        if call is None or self._starts_new_call(call, name, text):
            earlier, call = call, self._new(id, name, fragment)
            self._named_again.pop(index, None)
            # Where ids or indexes tell calls apart, one that says neither anew is the same call.
            call.replayed = (
                earlier is not None and not id and bool(earlier.id or self._by_index.keys() - {index})
            )
            return self._register(call, index)
        if name and call.name and not text and call.complete:
            self._named_again[index] = call
            if index is not None:
                self._by_index.pop(index, None)
            return call
        call.name = call.name or name
        call.id = call.id or id
        call.extra = call.extra or fragment.extra_content
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
            # A new id is a new call, even at an index that is taken, unless that call still waits for one.
            return at_index if at_index and not at_index.id and not at_index.complete else None
        if at_index:
            return at_index
        last = self.all[-1] if self.all else None
        if last is None:
            return None
        if name:
            same = not last.name or (index is None and last.name == name)
            return last if same and not last.complete else None
        # A tail with a stray index (DeepSeek: head 0, tail 1) goes on with the call that is open.
        return None if index is not None and last.complete else last

    def _starts_new_call(self, call: StreamedCall, name: str, text: str) -> bool:
        """A name again, with a fresh object after the first one closed, is another call."""
        return bool(name and call.name) and text.lstrip()[:1] == "{" and call.complete

    def _new(self, id: str, name: str, fragment: Call) -> StreamedCall:
        custom = fragment.custom is not None and bool(fragment.custom.name)
        kind = fragment.type if fragment.type and fragment.type not in _CLIENT_TYPES else "function"
        call = StreamedCall(id, name, "custom" if custom else kind)
        call.extra = fragment.extra_content
        self.all.append(call)
        return call


def as_index(value: Any) -> int | None:
    if isinstance(value, str) and value.isdigit():
        return int(value)
    return value if type(value) is int else None


def _name_and_text(fragment: Call) -> tuple[str | None, Any]:
    # Snowflake sends an empty `custom` beside every function: a value tells, not the key.
    function, custom = fragment.function or Function(), fragment.custom or Custom()
    return custom.name or function.name, custom.input or function.arguments


def _as_text(arguments: Any) -> str:
    """Some servers send the arguments as an object, or null."""
    return "" if arguments is None else msgspec.json.encode(arguments).decode()
