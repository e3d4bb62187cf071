"""The line number of every key is found in any valid TOML."""

import tomllib
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dragoman.config.lines import Path, line_index

TEXT = '''# a comment = 1
a = 1 # another
"q.x" = """
[not a table]
b = "
"""
b.c.d = [1, # one
  "two # not a comment ]",
  { e = 1, f = ["}"] },
]
[t."u \\"v"]  # a head
k = 1979-05-27T07:32:00Z
l = \'\'\'
\'\'\'
m = 'c:\\'

[[r]]
m = -1.5e3
[[r]]
m = true
[[r.s]]
x = []
[r.u]
y = {}
[[r]]
m = """a "quoted" end"""""
n = 1
'''


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    if path:
        yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from paths(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from paths(item, (*path, index))


def test_every_path_has_its_line() -> None:
    index = line_index(TEXT)
    assert set(index) == set(paths(tomllib.loads(TEXT)))
    assert index["q.x",] == 3
    assert index["b", "c", "d"] == 7
    assert [index["b", "c", "d", i] for i in range(3)] == [7, 8, 9]
    assert index["b", "c", "d", 2, "f", 0] == 9
    assert index["t", 'u "v', "k"] == 12
    assert [index["r", i] for i in range(3)] == [17, 19, 25]
    assert index["r", 1, "s", 0, "x"] == 22
    assert index["r", 1, "u", "y"] == 24
    assert index["r", 2, "n"] == 27


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=8)


def toml(value: Any) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, list):
        return "[\n" + "".join(f" {toml(item)}, # ]\n" for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml(key)} = {toml(item)}" for key, item in value.items()) + "}"
    return str(value).lower()


VALUES = st.recursive(
    TEXTS | st.integers() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, TEXTS | st.integers(), max_size=3),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(TEXTS, VALUES, max_size=3), max_size=3))
def test_every_path_of_a_generated_document_has_its_line(tables: list[dict[str, Any]]) -> None:
    text = "".join(
        "[[t]]\n" + "".join(f"{toml(key)} = {toml(value)}\n\n" for key, value in table.items())
        for table in tables
    )
    index = line_index(text)
    assert set(index) == set(paths(tomllib.loads(text)))
    lines = text.split("\n")
    for path, line in index.items():
        if len(path) == 3:
            assert lines[line - 1].startswith(toml(path[2]))
