"""`dragoman replay --against`: recorded turns, asked of other models."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.gateways import Loop, gateway
from support.scripted_upstream import in_background
from support.sdk_talk import QUESTION, TALKS
from support.wires import ANTHROPIC, CHAT

from dragoman.cli import main

UPSTREAM = '[upstreams.{0}]\nprotocol = "{1}"\nbase_url = "{2}"\ncredential = "none"\n'


def command(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["replay", *map(str, arguments)])


def cells(line: str) -> list[str]:
    return line.split()


@pytest.mark.parametrize("client", [ANTHROPIC, CHAT])
def test_each_turn_is_asked_and_judged(tmp_path: Path, client: str) -> None:
    folder, file = tmp_path / "recordings", tmp_path / "dragoman.toml"
    loop = Loop()
    with in_background() as upstream:
        config = UPSTREAM.format("up", CHAT, upstream.url) + UPSTREAM.format("other", ANTHROPIC, upstream.url)
        with gateway(f'[server]\nretries = 0\nrecord = "{folder.as_posix()}"\n{config}', loop) as served:
            talk = TALKS[client](served.url, "up/demo", stream=True)
            talk.answer(talk.ask(QUESTION), "Sunny")
        file.write_text(f'[server]\nretries = 0\nkeys = ["a-key-of-the-gateway"]\n{config}')
        asked = len(upstream.seen)
        targets = ("other/demo-misnamed", "up/demo-invalid", "up/demo-500")
        done = command(folder, "--config", file, *(word for name in targets for word in ("--against", name)))
        assert done.exit_code == 0, done.output
        assert len(upstream.seen) == asked + 2 * len(targets)
        histories = [seen.json["messages"] for seen in upstream.seen[asked:]]
    loop.close()
    assert all("Sunny" in str(history) for history in histories[3:]), "the recorded history is sent"
    lines = done.output.splitlines()
    assert cells(lines[0])[:6] == ["turn", "target", "outcome", "valid", "mended", "bad"]
    assert [cells(line)[:6] for line in lines[1:5]] == [
        ["1", "(recorded)", "ok", "1", "0", "0"],
        ["1", "other/demo-misnamed", "ok", "0", "1", "0"],
        ["1", "up/demo-invalid", "ok", "0", "0", "1"],
        ["1", "up/demo-500", "server", "0", "0", "0"],
    ]
    assert all(cells(line)[-1] == "get_weather" for line in lines[1:4])
    assert [cells(line)[:5] for line in lines[9:13]] == [
        ["all", "(recorded)", "2", "of", "2"],
        ["all", "other/demo-misnamed", "2", "of", "2"],
        ["all", "up/demo-invalid", "2", "of", "2"],
        ["all", "up/demo-500", "0", "of", "2"],
    ]
    assert lines[13].startswith("turn 1, up/demo-500: ")


def test_an_unknown_target_is_reported_first(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "weather-agent" / "tests" / "recordings"
    file = tmp_path / "dragoman.toml"
    file.write_text("".join(UPSTREAM.format(name, CHAT, "http://127.0.0.1:9") for name in ("up", "other")))
    done = command(example, "--config", file, "--against", "nowhere/x")
    assert done.exit_code != 0
    assert "--against nowhere/x: write UPSTREAM/MODEL, with one of the upstreams up, other" in done.output
    assert command(example).exit_code == 2
    assert command("--against", "up/x", "--serve", example).exit_code == 2
