"""Turns the text of one held value into strict JSON, by the rules that are on."""

from __future__ import annotations

import re
from typing import Any

from ..json_text import NotJson, parse_exact
from ..rules.lenient_json import read_value
from ..rules.syntax import escape_control, is_json_scalar, mend_escape, mend_word
from .context import CallContext

_ILLEGAL = re.compile(r"[\x00-\x1f]|\\(?:[\"\\/bfnrt]|u[0-9a-fA-F]{4}|(.))", re.DOTALL)


def strict_value(text: str, member: str, call: CallContext) -> tuple[str, Any] | None:
    """The value of `member` as strict JSON text, and parsed. None if the text cannot be read."""
    if text.startswith('"'):
        text = _legal_string(text, member, call)
    elif text[:1] not in "{[" and not is_json_scalar(text):
        mended = mend_word(text) if call.rules.on("words") else None
        if mended is not None:
            call.fixes.add("words", f"/{member}", text, mended)
        text = mended or ""
    try:
        return text, parse_exact(text)
    except NotJson:
        return _lenient_value(text, member, call)


def _lenient_value(text: str, member: str, call: CallContext) -> tuple[str, Any] | None:
    reader = read_value(text, call.rules.on) if text[:1] in ("{", "[") else None
    if reader is None:
        return None
    strict = "".join(reader.out)
    try:
        value = parse_exact(strict)
    except NotJson:
        return None
    for rule, around in reader.used.items():
        call.fixes.add(rule, f"/{member}", around, "")
    return strict, value


def _legal_string(text: str, member: str, call: CallContext) -> str:
    def mend(found: re.Match[str]) -> str:
        piece = found.group()
        if piece[0] == "\\" and found.group(1) is None:
            return piece
        return legal_character(piece, member, call) or piece

    return f'"{_ILLEGAL.sub(mend, text[1:-1])}"'


def legal_character(piece: str, member: str, call: CallContext) -> str | None:
    """A raw control character or an illegal escape, mended. None if the rule for it is off."""
    rule = "illegal-escapes" if piece[0] == "\\" else "control-characters"
    if not call.rules.on(rule):
        return None
    after = mend_escape(piece[1]) if piece[0] == "\\" else escape_control(piece)
    call.note_once(rule, f"/{member}", piece, after)
    return after
