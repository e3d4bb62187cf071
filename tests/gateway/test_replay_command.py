"""`dragoman replay`, and the test files that it writes."""

import runpy
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result
from gateway_harness import Gateway, Got, ask
from support.scripted_upstream import ScriptedUpstream
from test_recordings import record

from dragoman.cli import main
from dragoman.observe.tap import Ring, Tap
from dragoman.recording import load, replay
from dragoman.recording.format import file_header, frame


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recordings")

    async def scene(gateway: Gateway, served: ScriptedUpstream) -> Got:
        return await ask(gateway, "anthropic", "c/demo-misnamed")

    record(folder, scene)
    (path,) = folder.iterdir()
    return path


def command(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["replay", *map(str, arguments)])


def changed(path: Path, folder: Path, old: bytes, new: bytes) -> Path:
    """The recording with other bytes on the client's side."""
    found = load(path)
    track = Tap(Ring(0)).begin(found.begun.id, found.begun.client)
    went = [msgspec.structs.replace(one, data=one.data.replace(old, new)) for one in found.sent_chunks]
    records = [
        found.request,
        *(call.request for call in found.calls),
        *(c for call in found.calls for c in call.received),
    ]
    other = folder / "other.dragoman"
    other.write_bytes(file_header(track) + frame([*records, *went, found.ended]))
    return other


def test_both_sides_step_by_step(recording: Path) -> None:
    done = command(recording)
    assert done.exit_code == 0
    lines = done.output.splitlines()
    assert lines[0].startswith(f"exchange {load(recording).begun.id}, ")
    assert "anthropic from c (openai-chat); ok, HTTP 200" in lines[0]
    sides = [line.split()[1:3] for line in lines[1:] if "--" in line]
    assert sides[:2] == [["<--", "client"], ["-->", "upstream"]]
    assert ["<--", "upstream"] in sides[2:]
    assert ["-->", "client"] in sides[2:]
    assert any(line.startswith("call get_weather ") and "mended by" in line for line in lines)
    assert lines[-1] == "the client would now get the same bytes"
    assert "\x1b" not in done.output


def test_an_unchanged_replay_succeeds(recording: Path) -> None:
    done = command(recording, "--diff")
    assert (done.exit_code, done.output) == (0, "the client would now get the same bytes\n")


def test_a_difference_is_shown(recording: Path, tmp_path: Path) -> None:
    other = changed(recording, tmp_path, b"tool_use", b"tool_abuse\x1b[2J")
    done = command(other, "--diff")
    assert done.exit_code == 1
    assert any(line.startswith("-") and "tool_abuse\\x1b[2J" in line for line in done.output.splitlines())
    assert any(line.startswith("+") and "tool_use" in line for line in done.output.splitlines())
    assert done.output.splitlines()[-1] == "the client would now get different bytes"
    assert command(other).exit_code == 0, "only --diff judges"


def test_replay_in_another_protocol(recording: Path) -> None:
    done = command(recording, "--to", "gemini", "--mode", "whole")
    assert done.exit_code == 0
    assert '{"candidates"' in done.output
    refused = command(recording, "--to", "gemini", "--diff")
    assert refused.exit_code == 2
    assert "cannot be used with --to" in refused.output


@pytest.mark.parametrize(
    "options", [[], ["--to", "gemini", "--mode", "whole"]], ids=["as it was", "otherwise"]
)
def test_the_written_test_passes_and_can_fail(recording: Path, tmp_path: Path, options: list[str]) -> None:
    done = command(recording, "--as-test", "--into", tmp_path, *options)
    assert done.exit_code == 0
    (test,) = tmp_path.glob("test_*.py")
    assert str(test) in done.output
    assert "get_weather" in test.read_text()
    run = runpy.run_path(str(test))[test.stem]
    run()
    (expected,) = tmp_path.glob("*.expected")
    expected.write_bytes(expected.read_bytes()[:-1])
    with pytest.raises(AssertionError):
        run()
    again = command(recording, "--as-test", "--into", tmp_path)
    assert again.exit_code == 1
    assert " exists: move it away" in again.output


def test_a_file_that_is_no_recording_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.dragoman"
    path.write_text("something else")
    done = command(path)
    assert done.exit_code == 1
    assert done.output == (
        f"Error: {path} is not a recording: it does not start with 'dragoman recording 1'; "
        "give a file from `dragoman serve --record` or from the inspector\n"
    )


def test_the_library_gives_the_same_replay(recording: Path) -> None:
    played = replay(load(recording))
    assert played.same
    assert [call.name for call in played.receipts] == ["get_weather"]
