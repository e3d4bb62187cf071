"""Report for each field of a client's request how the translation changed it.

The report comes from data: both protocols declare which part of the neutral request each of their fields
holds, the upstream's body shows the sent fields, and the notices name the lost ones. Nothing is guessed from
values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from ..model.messages import Notice
from ..protocols.base import BaseProtocol, ClientProtocol
from ..protocols.common.fields import is_object
from ..protocols.facts import IN_PATH, FieldNames

Kind = Literal["same", "rewritten", "renamed", "joined", "emulated", "dropped"]
_EMULATED = "-emulated"
_MESSAGES = "messages"


class FieldChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """One field of the client's request.

    `same`: sent unchanged. `rewritten`: sent under its name, with another value. `renamed`: sent under
    another name. `joined`: it shares a field of the upstream with another field of the client. `emulated`:
    the upstream has no such field, and Dragoman emulates it. `dropped`: not sent.
    """

    field: str
    """The client's spelling of the field."""
    kind: Kind
    to: tuple[str, ...] = ()
    """The upstream's fields that hold it."""
    notices: tuple[Notice, ...] = ()
    """The notices about this field."""


def field_changes(
    client: ClientProtocol,
    upstream: BaseProtocol,
    asked: Mapping[str, Any],
    sent: Mapping[str, Any],
    notices: Sequence[Notice],
) -> list[FieldChange]:
    """The change of each field of the body `asked`. `sent` is its translation."""
    same_protocol = client.fields is upstream.fields
    given = {path: (spelling, value) for path, spelling, value in _flat(asked, client.fields)}
    written = {path: value for path, _, value in _flat(sent, upstream.fields)}
    targets = {path: _targets(_names(path, client.fields), upstream.fields, written) for path in given}
    changes: list[FieldChange] = []
    for path, (spelling, value) in given.items():
        about = [notice for notice in notices if _is_about(notice, path, client.fields.get(path, ()))]
        to = targets[path]
        if same_protocol and not to and path in written:
            to = (path,)  # an unknown field passes between equal protocols
        others = {field for key, other in targets.items() if key != path for field in other}
        shared = not same_protocol and bool(others.intersection(to) - {IN_PATH})
        if not to:
            emulated = any(notice.rule.endswith(_EMULATED) for notice in about)
            kind: Kind = "emulated" if emulated else "dropped"
        elif path in to:
            kind = "same" if written[path] == value else "rewritten"
        else:
            kind = "joined" if shared else "renamed"
        changes.append(FieldChange(spelling, kind, to, tuple(about)))
    return changes


def _names(path: str, fields: FieldNames) -> tuple[str, ...]:
    """The parts that a client's field holds. A conversation counts as messages, even with system messages."""
    names = fields.get(path, ())
    return (_MESSAGES,) if _MESSAGES in names else names


def _flat(body: Mapping[str, Any], fields: FieldNames) -> Iterator[tuple[str, str, Any]]:
    """The fields of `body`: the name in `fields`, the spelling in `body`, the value.

    An object whose members have their own entries in `fields` gives its members.
    """
    outer = {path.partition(".")[0] for path in fields if "." in path}
    for key, value in body.items():
        name = _spelt(key, fields)
        if name in outer and is_object(value):
            for inner, below in value.items():
                yield _spelt(f"{name}.{inner}", fields), f"{key}.{inner}", below
        else:
            yield name, key, value


def _spelt(path: str, fields: FieldNames) -> str:
    """The protocol's own spelling of `path`: Gemini's clients may write snake_case."""
    plain = path.replace("_", "").lower()
    known = (*fields, *(name.partition(".")[0] for name in fields))
    return next((name for name in known if name.replace("_", "").lower() == plain), path)


def _targets(names: tuple[str, ...], fields: FieldNames, written: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields of the upstream's request that hold these parts."""
    there = [field for field in fields if field == IN_PATH or field in written]
    found: dict[str, None] = {}
    for name in names:
        holding = [field for field in there if name in fields[field]]
        # The field for this part alone comes first: `instructions` before the system messages in `input`.
        found |= dict.fromkeys([field for field in holding if fields[field] == (name,)] or holding)
    return tuple(found)


def _is_about(notice: Notice, path: str, names: tuple[str, ...]) -> bool:
    """Is the notice about this field? Its path names a part of the neutral request, or the client's field."""
    first, _, rest = notice.path.partition(".")
    part = rest.partition(".")[0] if first == "settings" else first
    part = part.partition("[")[0]
    return part in names or part == path.partition(".")[0]
