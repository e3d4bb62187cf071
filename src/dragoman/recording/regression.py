"""Turn a recording into a pytest test: the recording, the expected bytes, and a test file."""

from __future__ import annotations

import re
import time
from pathlib import Path

from .format import ENDING, Recording, RecordingError
from .replay import Mode, Replayed

_TEST = '''"""The exchange {id} of {when}: {client} over {upstream}."""

from pathlib import Path

from dragoman.recording import load, replay

HERE = Path(__file__).parent
CALLS = {calls}
FAILURE = {failure}


def test_{name}() -> None:
    played = replay(load(HERE / "{name}{ending}"){options})
    calls = [(call.name, call.sent, call.complete) for call in played.receipts if call.dropped is None]
    assert calls == CALLS
    assert (played.failure.message if played.failure else None) == FAILURE
    assert played.client == (HERE / "{name}.expected").read_bytes()
'''


def write_test(
    recording: Recording, played: Replayed, data: bytes, folder: Path, *, to: str | None, mode: Mode | None
) -> Path:
    """Write the test, the recording and the expected bytes to `folder`. Returns the path of the test.

    `to` and `mode` are the options of the replay.
    """
    name = "exchange_" + re.sub(r"\W", "_", recording.begun.id)
    calls = [(call.name, call.sent, call.complete) for call in played.receipts if call.dropped is None]
    test = _TEST.format(
        id=recording.begun.id,
        when=time.strftime("%Y-%m-%d", time.gmtime(recording.begun.at)),
        client=recording.begun.client,
        upstream=recording.calls[-1].request.protocol if recording.calls else "no upstream",
        calls=_laid_out(calls),
        name=name,
        ending=ENDING,
        options="".join(f', {key}="{value}"' for key, value in (("to", to), ("mode", mode)) if value),
        failure=repr(played.failure.message if played.failure else None),
    )
    files = {
        f"test_{name}.py": test.encode(),
        f"{name}{ENDING}": data,
        f"{name}.expected": played.client,
    }
    there = [file for file in files if (folder / file).exists()]
    if there:
        raise RecordingError(f"{folder / there[0]} exists: move it away, or give another folder with --into")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, content in files.items():
            (folder / file).write_bytes(content)
    except OSError as error:
        raise RecordingError(
            f"the test cannot be written to {folder}: {error.strerror}; give another folder with --into"
        ) from None
    return folder / f"test_{name}.py"


def _laid_out(calls: list[tuple[str, str, bool]]) -> str:
    if not calls:
        return "[]"
    return "[\n" + "".join(f"    {call!r},\n" for call in calls) + "]"
