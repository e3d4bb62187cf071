"""`dragoman replay --against`: recorded turns, asked of other models."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support import plain_http
from support.gateways import Loop, gateway
from support.scripted_upstream import in_background
from support.sdk_talk import QUESTION, TALKS
from support.wires import ANTHROPIC, CHAT

from dragoman.cli import main
from dragoman.model.events import Usage
from dragoman.offline.compare import ComparedAnswer, JudgedCalls
from dragoman.offline.compare_page import compare_page

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


def test_a_session_of_the_gateway_is_compared_and_becomes_a_page(tmp_path: Path) -> None:
    folder, file, page = tmp_path / "recordings", tmp_path / "dragoman.toml", tmp_path / "compared.html"
    loop = Loop()
    with in_background() as upstream:
        server = f'[server]\nretries = 0\nrecord = "{folder.as_posix()}"\n'
        server += f'store = "{(tmp_path / "kept.db").as_posix()}"\n'
        config = server + UPSTREAM.format("up", CHAT, upstream.url)
        file.write_text(config + '\n[prices]\n"up/*" = { input = 1000, output = 1000 }\n')
        with gateway(config, loop) as served:
            for question in (QUESTION, "Something else"):
                talk = TALKS[CHAT](served.url, "up/demo", stream=True)
                talk.ask(question)
            loop.run(served.state.observed.ledger.close())
            sessions = plain_http.call(f"{served.url}/sessions").json["sessions"]
        assert len(sessions) == 2
        (asked,) = [one["session"] for one in sessions if one["opening"] != "Something else"]
        target = ("--against", "up/demo-invalid", "--against", "up/demo-500")
        done = command(asked, "--config", file, *target, "--page", page)
        assert done.exit_code == 0, done.output
        unknown = command("f" * 16, "--config", file, *target)
        assert f"no session '{'f' * 16}'" in unknown.output
        for path in folder.iterdir():
            path.unlink()
        gone = command(asked, "--config", file, *target)
        assert f"session {asked} has 1 turn, and no recording of them" in gone.output
    loop.close()
    rows = [cells(line) for line in done.output.splitlines()[1:]]
    assert [row[:3] for row in rows[:3]] == [
        ["1", "(recorded)", "ok"],
        ["1", "up/demo-invalid", "ok"],
        ["1", "up/demo-500", "server"],
    ]
    assert rows[0][8].startswith("$")  # the recorded answer has a price, too
    text = page.read_text()
    assert "<script" not in text
    assert "<td>the recording</td>" in text
    assert '<td class="bad">0 of 1 ok</td>' in text
    assert "<h2>Turn 1</h2>" in text
    assert "<h2>Turn 2</h2>" not in text


def test_the_page_shows_model_output_as_text() -> None:
    row = ComparedAnswer(
        turn=1,
        target="up/<b>",
        outcome="ok",
        calls=JudgedCalls(("<script>alert(1)</script>",), 1, 0, 0),
        usage=Usage(),
        cost=None,
        seconds=1.0,
        error="<i>no</i>",
    )
    page = compare_page([row], "<title>")
    assert not {"<b>", "<script>", "<i>"} & set(re.findall("<[a-z]+>", page))


def test_an_unknown_target_is_reported_first(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "weather-agent" / "tests" / "recordings"
    file = tmp_path / "dragoman.toml"
    file.write_text("".join(UPSTREAM.format(name, CHAT, "http://127.0.0.1:9") for name in ("up", "other")))
    done = command(example, "--config", file, "--against", "nowhere/x")
    assert done.exit_code != 0
    assert "--against nowhere/x: write UPSTREAM/MODEL, with one of the upstreams up, other" in done.output
    assert command(example).exit_code == 2
    assert command("--against", "up/x", "--serve", example).exit_code == 2
