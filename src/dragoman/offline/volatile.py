"""The values that may differ between two runs of one agent: dates, ids, paths. Data only.

`docs/how-to/test-your-agent.md` shows these tables.
"""

from __future__ import annotations

import re

import msgspec


class TextRule(msgspec.Struct, frozen=True):
    """Every match of `pattern` in any text of a request counts as `<name>`."""

    name: str
    pattern: re.Pattern[str]
    example: str


_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*"

TEXTS = (
    TextRule(
        "uuid",
        re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE),
        "0b8f6f5e-6c1d-4c47-9a53-0d5b7f2c9a11",
    ),
    TextRule(
        "time",
        re.compile(
            r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z| ?[+-]\d\d:?\d\d)?(?: ?UTC| ?GMT)?\b"
        ),
        "2026-01-31T12:00:00Z",
    ),
    TextRule(
        "date",
        re.compile(
            rf"\b\d{{4}}-\d\d-\d\d\b|\b\d{{1,2}}/\d{{1,2}}/\d{{4}}\b"
            rf"|\b(?:{_DAY},? )?{_MONTH} \d{{1,2}},? \d{{4}}\b"
            rf"|\b(?:{_DAY},? )?\d{{1,2}} {_MONTH} \d{{4}}\b"
        ),
        "2026-01-31, 1/31/2026, Saturday, January 31, 2026",
    ),
    TextRule(
        "id",
        re.compile(r"\b(?:session|conversation|thread|request|req|resp|msg|call|toolu|chatcmpl)_[0-9A-Za-z]{8,}\b"),
        "session_01HY3kX9qW",
    ),
    TextRule(
        "billing",
        re.compile(r"\bx-anthropic-billing-header:[^\n]*"),
        "x-anthropic-billing-header: cc_version=2.1.0; cch=3f2a9;",
    ),
    TextRule(
        "temporary",
        re.compile(r"(?:/private)?(?:/var/folders/\w+/\w+/T|/tmp)/[\w.+-]+|(?i:[A-Z]:\\\S*?\\Temp\\[\w.+-]+)"),
        "/tmp/tmpab12cd",
    ),
    TextRule(
        "home",
        re.compile(r"/(?:home|Users)/[\w.-]+|/root\b|(?i:[A-Z]:\\Users\\[\w.-]+)"),
        "/home/mara",
    ),
    TextRule(
        "run",
        re.compile(r"\bChunk ID: [0-9a-f]+\b|\bWall time: [0-9.]+ seconds?\b"),
        "Chunk ID: 3f2a9c",
    ),
)  # fmt: skip

WORKING_DIRECTORY = re.compile(
    r"(?i)(?:working directory|current directory|\bcwd|workspace)(?:</?[a-z]+>|[\s:=`'\"*>]|\bis\b)+"
    r"(/[^\s<>\"'`,;]+|[a-z]:\\[^\s<>\"'`,;]+)"
)
"""Finds the agent's working directory. Each occurrence in the request becomes `<cwd>`."""

NOT_IN_NAMES = re.compile("[^0-9A-Za-z]")
"""Claude Code names its folder for a project after the working directory: `-home-mara-project`."""
