"""A glob finds the same in PostgreSQL as in the gateway's own list."""

from fnmatch import fnmatchcase

import psycopg
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dragoman.store.globs import regex

LETTERS = "ab[]!^-*?\\_.+(){}|$ö"


def test_postgresql_reads_a_glob_as_fnmatch_does(database: str) -> None:
    with psycopg.connect(database) as connection:

        @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
        @given(st.text(LETTERS, max_size=8), st.text(LETTERS, max_size=4))
        @example("[!^-]", "^")
        @example("[]-a]", "]")
        @example("[z-a]", "b")
        @example("a*[!b]", "a\nc")
        def agree(glob: str, text: str) -> None:
            row = connection.execute("SELECT %s::text ~ %s", (text, regex(glob))).fetchone()
            assert row is not None
            assert row[0] == fnmatchcase(text, glob)

        agree()
