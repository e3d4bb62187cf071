"""A glob finds the same in SQLite as in the gateway's own list."""

import sqlite3
from contextlib import closing
from fnmatch import fnmatchcase

from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.store.globs import sqlite_glob

LETTERS = "ab[]!^-*?\\_"


@given(st.text(LETTERS, max_size=8), st.text(LETTERS, max_size=4))
@example("[!^-]", "^")
@example("[^-]", "-")
@example("[]-a]", "]")
@example("[z-a]", "b")
def test_sqlite_reads_a_glob_as_fnmatch_does(glob: str, text: str) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        found = connection.execute("SELECT ? GLOB ?", (text, sqlite_glob(glob))).fetchone()[0]
    assert bool(found) == fnmatchcase(text, glob)
