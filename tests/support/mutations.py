"""Mutations of well-formed input: bytes, frames, and JSON values of another type."""

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from dragoman.conform import sse

Path = tuple[str | int, ...]

# One value of each JSON type, and nearly correct ones.
STRANGE: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    3,
    2.5,
    12.0,
    10**30,
    "",
    "7",
    "strange",
    "\ud83d",
    " \n",
    "</tool>\u2028",
    [],
    {},
    [None],
    [1, "a"],
    [{}],
    {"": None},
    {"type": "text", "text": 5},
    {"error": {"message": "no"}},
]


@st.composite
def spoiled_bytes(draw: st.DrawFn, body: bytes) -> bytes:
    """`body` with a few bytes flipped, removed, doubled or inserted, perhaps cut."""
    data = bytearray(body)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        size = draw(st.integers(1, 12))
        match draw(st.sampled_from(["flip", "delete", "double", "insert", "cut"])):
            case "flip" if data:
                data[at] ^= 1 << draw(st.integers(0, 7))
            case "delete":
                del data[at : at + size]
            case "double":
                data[at:at] = data[at : at + size]
            case "insert":
                data[at:at] = draw(st.binary(max_size=6))
            case _:
                del data[max(at, len(data) - size * 20) :]
    return bytes(data)


@st.composite
def shuffled_frames(draw: st.DrawFn, stream: bytes) -> bytes:
    """Frames in another order, some missing, some twice."""
    frames = [frame + b"\n\n" for frame in stream.split(b"\n\n") if frame]
    order = draw(st.lists(st.sampled_from(range(len(frames))), max_size=len(frames) + 3))
    if draw(st.booleans()):  # nearly in order: one frame moved
        order = list(range(len(frames)))
        order.insert(draw(st.integers(0, len(order))), order.pop(draw(st.integers(0, len(order) - 1))))
    return b"".join(frames[place] for place in order)


@st.composite
def retyped_value(draw: st.DrawFn, value: Any) -> Any:
    """`value` with one to three of its members given another type, renamed or left out."""
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
        places = list(paths(value))
        if places:
            value = edited(value, draw(st.sampled_from(places)), draw(_edits()))
    return value


@st.composite
def retyped_stream(draw: st.DrawFn, stream: bytes) -> bytes:
    """A stream in which one or two frames have values of another type."""
    events = sse.events(stream)
    chosen = draw(st.sets(st.integers(0, len(events) - 1), min_size=1, max_size=2))
    frames: list[bytes] = []
    for place, event in enumerate(events):
        data = event.data.encode()
        if place in chosen and data[:1] == b"{":
            data = json.dumps(draw(retyped_value(json.loads(data)))).encode()
        name = b"event: %s\n" % event.name.encode() if event.name else b""
        frames.append(b"%sdata: %s\n\n" % (name, data))
    return b"".join(frames)


@st.composite
def retyped_body(draw: st.DrawFn, body: bytes) -> bytes:
    return json.dumps(draw(retyped_value(json.loads(body)))).encode()


@st.composite
def chunked(draw: st.DrawFn, body: bytes) -> list[bytes]:
    """Any split of `body`."""
    cuts = sorted(draw(st.sets(st.integers(0, len(body)), max_size=8)))
    return [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]


def paths(value: Any, here: Path = ()) -> Iterator[Path]:
    """The path of every member."""
    items: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    for key, member in items:
        yield (*here, key)
        yield from paths(member, (*here, key))


def edited(value: Any, path: Path, edit: tuple[str, Any]) -> Any:
    """A copy of `value` with the member at `path` set, left out or renamed."""
    key, *rest = path
    copy = dict(value) if isinstance(value, dict) else list(value)
    if rest:
        copy[key] = edited(copy[key], tuple(rest), edit)
        return copy
    what, new = edit
    if what == "set":
        copy[key] = new
    elif isinstance(copy, dict):
        moved = copy.pop(key)
        if what == "rename":
            copy[f"x_{key}"] = moved
    else:
        del copy[key]
    return copy


def _edits() -> st.SearchStrategy[tuple[str, Any]]:
    strange = st.sampled_from(STRANGE).map(lambda value: ("set", value))
    return st.one_of(strange, strange, st.sampled_from([("drop", None), ("rename", None)]))
