"""Report for each field of a client's request how the translation changed it.

The report comes from the translation itself. The reader of the client's protocol says what each field sets
(`field_reading`). Both protocols declare which parts of the neutral request their fields hold, the upstream's
body shows the sent fields, and the notices name the lost ones. Nothing is guessed from values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from ..model.messages import Notice
from ..protocols.base import BaseProtocol, ClientProtocol
from ..protocols.common.fields import is_object
from ..protocols.facts import IN_PATH, FieldNames
from .field_reading import FieldReading

Kind = Literal["same", "rewritten", "renamed", "joined", "emulated", "default", "overruled", "dropped"]
_EMULATED = "-emulated"
_EMPTY: tuple[Any, ...] = (None, "", [], {})
_OWN_WORK = frozenset({"include_usage"})
"""Parts that Dragoman does itself, whatever the upstream."""


class FieldChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """One field of the client's request.

    `same`: sent unchanged. `rewritten`: sent under its name, with another value. `renamed`: sent under
    another name. `joined`: it shares a field of the upstream with another field of the client. `emulated`:
    the upstream has no such field, and Dragoman emulates it. `default`: not sent, the request asks for
    the same without it. `overruled`: not sent, another field of the client sets the same. `dropped`:
    not sent.
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
    path: str = "",
) -> list[FieldChange]:
    """The change of each field of the body `asked`, posted to `path`. `sent` is its translation."""
    same_protocol = client.fields is upstream.fields
    given = {field: (spelling, value) for field, spelling, value in _flat(asked, client.fields)}
    written = {field: value for field, _, value in _flat(sent, upstream.fields)}
    reading = FieldReading(client, asked, path)
    parts = {field: reading.parts(field, spelling) for field, (spelling, _) in given.items()}
    targets = {field: _targets(parts[field], upstream.fields, written) for field in given}
    changes: list[FieldChange] = []
    for field, (spelling, value) in given.items():
        names = (*parts[field], *client.fields.get(field, ()))
        about = [notice for notice in notices if _is_about(notice, field, names, client.fields)]
        to = targets[field]
        kind: Kind
        if same_protocol and field in written:
            to = (field,)
            kind = "same" if written[field] == value else "rewritten"
        elif field in to:
            kind = "same" if written[field] == value else "rewritten"
        elif value in _EMPTY or (
            reading.asks_for_default(field, parts[field]) and not _holds_alone(to, parts[field], upstream)
        ):
            kind, to = "default", ()
        elif to:
            others = {one for key, other in targets.items() if key != field for one in other}
            kind = "joined" if others.intersection(to) - {IN_PATH} else "renamed"
        else:
            kind = _unsent(about, parts[field], client.fields.get(field, ()))
        changes.append(FieldChange(spelling, kind, to, tuple(about)))
    return changes


def _unsent(about: Sequence[Notice], parts: Sequence[str], declared: Sequence[str]) -> Kind:
    if any(notice.rule.endswith(_EMULATED) for notice in about) or (parts and _OWN_WORK.issuperset(parts)):
        return "emulated"
    return "overruled" if declared and not parts else "dropped"


def _holds_alone(to: Sequence[str], parts: Sequence[str], upstream: BaseProtocol) -> bool:
    """Is one of these fields written for these parts alone?"""
    return any(field == IN_PATH or {*upstream.fields[field]} <= {*parts} for field in to)


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


def _is_about(notice: Notice, field: str, parts: Sequence[str], fields: FieldNames) -> bool:
    """Is the notice about this field? Its path names a part of the neutral request, or the client's field."""
    first, _, rest = notice.path.partition(".")
    if first == "extras":  # members without neutral meaning
        return field not in fields and rest.partition(".")[0] in (field, field.partition(".")[0])
    part = rest.partition(".")[0] if first == "settings" else first
    part = part.partition("[")[0]
    return part in parts or part == field.partition(".")[0]
