"""The warnings of a translation, found in the code by their calls: `notices.warn(…)` and `Notice(…)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

Names = dict[str, ast.expr]


def messages(package: Path) -> dict[str, list[str]]:
    """Each warning with all its possible messages."""
    found: dict[str, dict[str, None]] = {}
    for path in sorted(package.rglob("*.py")):
        tree = ast.parse(path.read_text())
        known = _assigned(tree.body)
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for name, message in _in(function, known):
                    found.setdefault(name, {})[message] = None
    return {name: [text for text in texts if text] for name, texts in found.items()}


def _in(function: ast.FunctionDef | ast.AsyncFunctionDef, known: Names) -> Iterator[tuple[str, str]]:
    names = known | _assigned(ast.walk(function))
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and len(node.args) == 3 and _called(node) in ("warn", "Notice"):
            for name in _texts(node.args[0], names):
                yield from ((name, message) for message in _texts(node.args[2], names) or [""])


def _called(node: ast.Call) -> str:
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def _assigned(nodes: Iterator[ast.AST] | list[ast.stmt]) -> Names:
    lines = [node for node in nodes if isinstance(node, ast.Assign)]
    return {
        target.id: line.value for line in lines for target in line.targets if isinstance(target, ast.Name)
    }


def _texts(node: ast.expr, names: Names) -> list[str]:
    """The possible texts of a node, with placeholders for inserted values."""
    match node:
        case ast.Constant(str(value)):
            return [value]
        case ast.JoinedStr(values):
            return ["".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in values)]
        case ast.Name(id) if id in names:
            return _texts(names[id], {name: value for name, value in names.items() if name != id})
        case ast.IfExp(_, body, other):
            return [*_texts(body, names), *_texts(other, names)]
        case ast.Subscript(ast.Name(id)) if isinstance(names.get(id), ast.Dict):
            return [text for value in names[id].values for text in _texts(value, names)]
        case _:
            return []
