"""Finds the arguments in a text that does not begin with an object: a string, a list, prose, or nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

from ..json_text import NotJson, dump, parse_exact, quote
from ..rules.lenient_json import read_value
from ..rules.syntax import (
    add_opening_brace,
    drop_placeholder,
    is_nothing,
    read_string,
    strip_fence,
    strip_lead,
    take_only_object,
    wrap_lone_value,
)
from .context import CallContext

_decoder = json.JSONDecoder(strict=False)


def candidates(text: str, call: CallContext) -> Iterator[tuple[str, str]]:
    """Readings of `text` as (rule, arguments text), the most certain one first."""
    plain = text.strip().lstrip("\ufeff")
    if is_nothing(plain):
        yield "empty-arguments", "{}"
        return
    unfenced = strip_fence(plain).strip()
    if unfenced != plain:
        yield "code-fence", unfenced
        return
    real = drop_placeholder(plain)
    if real != plain:
        yield "empty-prefix", real
        return
    yield from _by_first_character(plain, call)


def _by_first_character(plain: str, call: CallContext) -> Iterator[tuple[str, str]]:
    if plain.startswith('"'):
        yield from _from_string(plain, call)
    elif plain.startswith("["):
        yield from _from_list(plain, call)
    else:
        found = strip_lead(plain)
        if found != plain:
            yield "leading-text", found


def _from_string(plain: str, call: CallContext) -> Iterator[tuple[str, str]]:
    with_brace = add_opening_brace(plain)
    if with_brace != plain:
        yield "missing-opening-brace", with_brace
        return
    if plain[1:].lstrip().startswith('{"') and plain.endswith('}"'):
        yield "json-in-string", plain[1:-1]  # the model put quotes around an object and did not escape it
        return
    inner = _decode_string(plain)
    if inner is None:
        return
    if is_nothing(inner) or inner.lstrip()[:1] in ("{", "[", '"', "`"):
        yield "json-in-string", inner
        return
    name = _only_member(call, "string")
    if name is not None:
        yield "lone-value", wrap_lone_value(quote(inner), name)


def _decode_string(plain: str) -> str | None:
    try:
        value, end = _decoder.raw_decode(plain)
    except (ValueError, RecursionError):
        return None
    # Text after the closing quote: this is not one string.
    return None if plain[end:].strip() else read_string(value)


def _only_member(call: CallContext, type_name: str) -> str | None:
    root = call.schema.root
    names = list(root.required)
    return names[0] if len(names) == 1 and root.member(names[0]).wants(type_name) else None


def _from_list(plain: str, call: CallContext) -> Iterator[tuple[str, str]]:
    items: Any = None
    try:
        items = parse_exact(plain)
    except NotJson:
        reader = read_value(plain, call.rules.on)
        if reader is not None:
            items = parse_exact("".join(reader.out))
    if not isinstance(items, list):
        return
    only = take_only_object(cast("list[Any]", items))
    if isinstance(only, dict):
        yield "list-around", dump(cast("Any", only))
    name = _only_member(call, "array")
    if name is not None:
        yield "lone-value", wrap_lone_value(dump(cast("Any", items)), name)
