"""The model's name in the body of a request that passes as it is: find it, and put another in its place.

The name is the member `model` of a JSON object, or the field `model` of a form (`multipart/form-data`). All
other bytes of a form stay as they are.
"""

from __future__ import annotations

import re
from email.message import Message

import msgspec

from ...model.errors import BadRequest
from ...protocols.common.typed_json import body_members

_FORM = "multipart/form-data"
_FIELD = re.compile(rb'content-disposition:[^\r\n]*;\s*name="?model"?\s*(;|\r|$)', re.IGNORECASE)
_BREAK, _HEAD_END = b"\r\n", b"\r\n\r\n"
_names = msgspec.json.Decoder(str).decode
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


def model_in(body: bytes, content_type: str) -> str:
    """The model's name; empty if the body has none."""
    if not body:
        return ""
    if _is_form(content_type):
        span = _field(body, content_type)
        return body[slice(*span)].decode("utf-8", "replace").strip() if span else ""
    value = body_members(body).get("model")
    if value is None:
        return ""
    try:
        return _names(value)
    except msgspec.ValidationError:
        raise BadRequest("must be a string", "model") from None


def with_model_name(
    body: bytes, content_type: str, model: str, *, within: str = "", prefix: str = ""
) -> bytes:
    """The body with `model` in the place of the model's name. A body without a name stays as it is.

    `within` is a member with a list of objects that name the model, too. A name that has `prefix` keeps it.
    """
    if not body:
        return body
    if _is_form(content_type):
        span = _field(body, content_type)
        return body[: span[0]] + model.encode() + body[span[1] :] if span else body
    members = _renamed_members(body_members(body), model, prefix)
    if within in members:
        try:
            items = _items(members[within])
            listed = [_renamed_members(_members(item), model, prefix) for item in items]
        except msgspec.ValidationError:
            raise BadRequest("must be a list of objects", within) from None
        members[within] = msgspec.Raw(msgspec.json.encode(listed))
    return msgspec.json.encode(members)


def _renamed_members(members: dict[str, msgspec.Raw], model: str, prefix: str) -> dict[str, msgspec.Raw]:
    if "model" in members:
        before = prefix if bytes(members["model"]).startswith(b'"' + prefix.encode()) else ""
        members["model"] = msgspec.Raw(msgspec.json.encode(before + model))
    return members


def _is_form(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == _FORM


def _field(body: bytes, content_type: str) -> tuple[int, int] | None:
    """Where the value of the field `model` begins and ends."""
    head = Message()
    head["content-type"] = content_type
    boundary = head.get_boundary()
    if boundary is None:
        raise BadRequest(f"a {_FORM} body needs a boundary in its Content-Type header")
    mark = b"--" + boundary.encode("latin-1", "replace")
    at = body.find(mark)
    while at >= 0:
        begin = at + len(mark)
        middle = body.find(_HEAD_END, begin)
        if middle < 0:
            return None
        value = middle + len(_HEAD_END)
        end = body.find(_BREAK + mark, middle + len(_BREAK))
        if end < 0:
            return None
        if _FIELD.search(body, begin, middle):
            return value, max(value, end)
        at = end + len(_BREAK)
    return None
