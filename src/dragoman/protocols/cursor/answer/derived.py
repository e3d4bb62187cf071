"""Parameters of Cursor's tools that are computed from several arguments."""

from __future__ import annotations

from typing import Any

from ...common.fields import Obj
from .languages import language

_START = ("start_line_one_indexed", "start_line", "offset")
_END = ("end_line_one_indexed_inclusive", "end_line")
_COUNT = ("limit",)
_ENTIRE = ("read_entire_file", "should_read_entire_file")


def line_range(arguments: Obj, params: Obj) -> Obj:
    """The lines of a file to read: a range if the model asks for one, otherwise the entire file.

    >>> line_range({"offset": 10, "limit": 5}, {})
    {'start_line_one_indexed': 10, 'end_line_one_indexed_inclusive': 14}
    >>> line_range({"limit": 5}, {})
    {'start_line_one_indexed': 1, 'end_line_one_indexed_inclusive': 5}
    >>> line_range({}, {})
    {'read_entire_file': True}
    """
    start, end, count = (_number(arguments, names) for names in (_START, _END, _COUNT))
    if start is None and end is None and count is None:
        # Some models decline the entire file, but give no range.
        declined = any(arguments.get(name) is False for name in _ENTIRE)
        return {} if declined else {"read_entire_file": True}
    if start is None or start == 0:
        start = 1  # Cursor's lines count from one, even if an offset counts from zero
    if end is None and count is not None and start > 0:
        end = start + max(count, 1) - 1
    lines: Obj = {"start_line_one_indexed": start}
    return lines if end is None else {**lines, "end_line_one_indexed_inclusive": end}


def file_language(arguments: Obj, params: Obj) -> Obj:
    """The language of the edited file, by its name, unless the model gave one."""
    path = params.get("relative_workspace_path")
    if "language" in params or not isinstance(path, str):
        return {}
    return {"language": language(path)}


def _number(arguments: Obj, names: tuple[str, ...]) -> int | None:
    return next((n for n in (_whole(arguments.get(name)) for name in names) if n is not None), None)


def _whole(value: Any) -> int | None:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if type(value) is int else None
