"""Parses calls that were written as Python, also if they are nearly Python."""

from __future__ import annotations

import ast
import keyword
import re
import warnings


def parsed(text: str) -> ast.expr | None:
    """A Python expression. None if `text` is not one."""
    found = statements(text)
    return found[0] if found and len(found) == 1 else None


def statements(text: str) -> list[ast.expr] | None:
    """Python expressions, one per line. None if there is anything else."""
    text = _SIGNED.sub(_spelled_name, text.strip())
    tree = _tree(text) or _tree(_in_python(text)) or _tree(_in_python(_requoted(text)))
    if tree is None:
        return None
    found = [node.value for node in tree.body if isinstance(node, ast.Expr)]
    return found if len(found) == len(tree.body) else None


def original(name: str) -> str:
    """The original name of a tool or parameter that was renamed to be valid Python."""
    if not name.startswith(_RESERVED):
        return name
    return _SPELLED.sub(lambda found: chr(int(found[1], 16)), name.removeprefix(_RESERVED))


def _tree(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():  # Python warns about "\\d" in a string; that belongs in no log
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


# The closing quote is optional: else the search from each unclosed quote costs the square of the text.
_STRING = r"""'(?:[^'\\]|\\.)*+'?|"(?:[^"\\]|\\.)*+"?"""
_KEYWORD = rf"\b(?:{'|'.join(keyword.kwlist)})(?=\s*=(?!=))"
_LEADING_ZERO = r"(?<![\w.])0\d+(?![\w.])"
_NO_PYTHON = re.compile(rf"({_STRING})|({_KEYWORD})|({_LEADING_ZERO})", re.DOTALL)
_RESERVED = "reserved_word_"
# Names with signs, outside strings: a tool or a parameter of an MCP server may be called `list-files`.
_SIGNED = re.compile(rf"{_STRING}|(?<![\w.:/-])([A-Za-z_][\w.:/-]*+)(?=\s*+(?:\(|=(?!=)))", re.DOTALL)
_SPELLED = re.compile(r"_x([0-9a-f]{2})_")


def _spelled_name(found: re.Match[str]) -> str:
    if not found[1]:
        return found[0]
    return _RESERVED + re.sub(r"[-:/]", lambda sign: f"_x{ord(sign[0]):02x}_", found[1])


_ESCAPED = {"\r": "\\r", "\n": "\\n", "\0": "\\x00"}
_CONTROL = re.compile(r"[\r\n\0]")


def _in_python(text: str) -> str:
    """Make text valid Python.

    Line breaks in strings are escaped (LFM2), and parameters called `from` are renamed. A number like 07
    becomes a string: only the schema knows whether its zero matters.
    """

    def spelled(found: re.Match[str]) -> str:
        if found[2]:
            return _RESERVED + found[2]
        if found[3]:
            return f'"{found[3]}"'
        return _CONTROL.sub(lambda char: _ESCAPED[char[0]], found[1])

    return _NO_PYTHON.sub(spelled, text)


_OPENING = re.compile(r"""[(,]\s*\w+\s*=\s*(?P<quote>['"])""")
_CLOSING = {
    quote: re.compile(rf"{quote}(?=\s*(?:,\s*\w+\s*=(?!=)|\)\s*(?:\]\s*\Z|,\s*[\w.]+\s*\(|\Z)))")
    for quote in "'\""
}
_BARE_QUOTE = {quote: re.compile(rf"(\\.)|{quote}", re.DOTALL) for quote in "'\""}


def _requoted(text: str) -> str:
    """Escape quotes inside the strings of parameters: `run(command='sed -n '1,5p' a.py')` (LFM2).

    A quote ends a string if the next parameter, the next call or the end of the calls follows.
    """
    out: list[str] = []
    pos = 0
    while opening := _OPENING.search(text, pos):
        quote = opening["quote"]
        closing = _CLOSING[quote].search(text, opening.end())
        if closing is None:
            break
        inner = text[opening.end() : closing.start()]
        out.append(text[pos : opening.end()])
        out.append(_BARE_QUOTE[quote].sub(lambda found, quote=quote: found[1] or "\\" + quote, inner))
        pos = closing.start() + 1
        out.append(quote)
    return "".join(out) + text[pos:]
