"""Renders the part of Go's template language that the chart in `deploy/` uses.

Anything else in a template is an error: extend this module first.
"""

import re
from typing import Any

import yaml

_TOKEN = re.compile(r"(\s*)\{\{-\s*(.*?)\s*(-?)\}\}|\{\{\s*(.*?)\s*(-?)\}\}", re.DOTALL)
_BLOCK = re.compile(r"(if|with|define)\s+(.+)")


class Chart:
    def __init__(self, helpers: str, **values: Any) -> None:
        self._values = values
        self._defined: dict[str, list[Any]] = {}
        self._write(_parsed(helpers), values)

    def render(self, template: str) -> str:
        return self._write(_parsed(template), self._values)

    def _write(self, nodes: list[Any], dot: Any) -> str:
        return "".join(node if isinstance(node, str) else self._node(*node, dot) for node in nodes)

    def _node(self, kind: str, expression: str, inner: list[Any], dot: Any) -> str:
        if kind == "define":
            self._defined[expression.strip('"')] = inner
            return ""
        value = self._value(expression, dot)
        if kind == "write":
            assert value is not None, f"{expression} has no value"
            return str(value)
        return self._write(inner, value if kind == "with" else dot) if value else ""

    def _value(self, expression: str, dot: Any) -> Any:
        first, *rest = (part.strip() for part in expression.split("|"))
        value = self._term(first, dot)
        for step in rest:
            value = self._step(step.split(), value, dot)
        return value

    def _step(self, words: list[str], value: Any, dot: Any) -> Any:
        match words:
            case ["nindent", count]:
                return "\n" + "\n".join(
                    " " * int(count) + line if line else "" for line in str(value).split("\n")
                )
            case ["default", other]:
                return value or self._term(other, dot)
        raise AssertionError(f"no template of ours has used {' '.join(words)} before")

    def _term(self, term: str, dot: Any) -> Any:
        match term.split():
            case ["include", name, "."]:
                return self._write(self._defined[name.strip('"')], dot)
            case ["not", path]:
                return not self._term(path, dot)
            case ["toYaml", path]:
                return yaml.safe_dump(self._term(path, dot), sort_keys=False).strip()
            case [path] if path.startswith("."):
                for name in path.strip(".").split(".") if path != "." else []:
                    dot = dot[name]  # a name that is not in values.yaml is an error
                return dot
        raise AssertionError(f"no template of ours has used {term} before")


def _parsed(text: str) -> list[Any]:
    """A list of text and (kind, expression, inner nodes)."""
    top: list[Any] = []
    open_blocks = [top]
    at = 0
    for token in _TOKEN.finditer(text):
        open_blocks[-1].append(text[at : token.start()])
        code = token[2] if token[2] is not None else token[4]
        at = token.end()
        if token[3] or token[5]:
            at += len(text[at:]) - len(text[at:].lstrip())
        block = _BLOCK.fullmatch(code)
        if code == "end":
            open_blocks.pop()
        elif block:
            inner: list[Any] = []
            open_blocks[-1].append((block[1], block[2], inner))
            open_blocks.append(inner)
        else:
            open_blocks[-1].append(("write", code, []))
    assert len(open_blocks) == 1, "a block is not ended"
    return [*top, text[at:]]
