"""Recordings beyond the limits of the config go, while the gateway runs."""

import asyncio
import os
import time
from pathlib import Path

import pytest
from support.plain_gateway import asked, before, soon
from support.scripted_upstream import ScriptedUpstream

from dragoman.recording import recorder

DAY = 86_400


def recordings(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("limit", "kept"),
    [
        ('record_retention = "2d"', {"b.dragoman"}),
        ('record_size = "1KB"', {"b.dragoman"}),
        ("", {"a.dragoman", "b.dragoman"}),
    ],
)
def test_old_recordings_are_deleted_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, kept: set[str]
) -> None:
    monkeypatch.setattr(recorder, "_PRUNE_SECONDS", 0.0)
    for name, days in (("a.dragoman", 3), ("b.dragoman", 1), ("notes.txt", 9)):
        (tmp_path / name).write_bytes(bytes(600))
        os.utime(tmp_path / name, (time.time() - days * DAY,) * 2)

    async def scene() -> None:
        server = f'retries = 0\nrecord = "{tmp_path}"\n{limit}'
        async with before(ScriptedUpstream(), server=server) as gateway:
            assert await soon(lambda: recordings(tmp_path) == {*kept, "notes.txt"}, 5)
            if not limit.startswith("record_size"):
                await asked(gateway)
                assert await soon(lambda: len(recordings(tmp_path)) == len(kept) + 2, 5)

    asyncio.run(scene())
