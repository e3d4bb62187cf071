"""The inspector's view of one exchange: calls, timeline, request, bytes, replay and copy."""

import concurrent.futures
import json
import re
import shlex
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser.asking import CLIENTS, MENDED, ask, asked, asked_as, calls, config, held
from playwright.sync_api import expect
from support.gateways import Gateway, Loop, gateway
from support.scripted_upstream import ScriptedUpstream

KEY = "gate-key-1234567890"
HOSTILE = (
    '<img src=x onerror="window.pwned=1"><script>window.pwned=2</script><svg/onload=window.pwned=3>'
    '<a href="javascript:window.pwned=4">x</a>"\'`</pre></script><style>*{display:none}</style>{{7*7}}${7*7}'
)


@pytest.fixture
def mended(served: Gateway, upstream: ScriptedUpstream) -> str:
    upstream.script(calls("Bash", MENDED))
    return asked(served)


def tab(page: Any, name: str) -> Any:
    page.get_by_role("tab", name=name).click()
    return page.get_by_role("tabpanel")


def test_a_mended_call_shows_what_changed_and_why(
    visit: Callable[..., Any], served: Gateway, mended: str
) -> None:
    page = visit(served, f"#{mended}")
    expect(page.get_by_text("I will look.")).to_be_visible()
    card = page.get_by_role("article", name="Tool call Bash")
    was = card.locator(".line.was")
    now = card.locator(".line.now")
    expect(was).to_have_count(2)
    expect(was.first).to_contain_text('"prompt": "ls -la src"')
    expect(now.first).to_contain_text('"command": "ls -la src"')
    expect(now.first).to_contain_text("tool-alias")
    expect(was.last).to_contain_text('"timeout": "30"')
    expect(now.last).to_contain_text('"timeout": 30')
    expect(now.last).to_contain_text("number-as-text")
    fixes = card.get_by_role("list", name="What was mended").get_by_role("listitem")
    expect(fixes).to_have_count(2)
    expect(fixes.filter(has_text="number-as-text")).to_contain_text(
        "A number that was written as a string is parsed"
    )
    expect(card).to_contain_text("Fits the schema that the client declared")
    expect(card.get_by_role("img")).to_have_accessible_name(re.compile("4 fragments in, 1 fragment out"))
    card.get_by_text("Fragments from the upstream (4)").click()
    expect(card.locator(".fragments li").first).to_contain_text('{"pro')
    card.get_by_text("Original bytes from the upstream").click()
    expect(card.locator("details[open] pre")).to_have_text("".join(MENDED))


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("client", CLIENTS)
def test_the_answer_of_every_protocol_is_shown(
    client: str, stream: bool, visit: Callable[..., Any], served: Gateway, upstream: ScriptedUpstream
) -> None:
    upstream.script(calls("Bash", MENDED))
    page = visit(served, f"#{asked_as(served, client, stream=stream)}")
    expect(page.locator(".prose")).to_have_text("I will look.")
    card = page.get_by_role("article", name="Tool call Bash")
    expect(card).to_have_count(1)
    expect(card.locator(".line.now").first).to_contain_text('"command": "ls -la src"')
    expect(card.get_by_text("Fragments from the upstream (4)")).to_be_visible()
    expect(card.get_by_text("Fragments to the client (1)")).to_be_visible()
    panel = tab(page, "timeline")
    expect(panel.locator(".to-client .part.text")).to_contain_text("I will look.")
    expect(panel.locator(".to-client .part.stop")).to_have_count(1)
    expect(panel.locator(".to-client .part.usage").last).to_contain_text("1,234 in, 56 out")


def test_an_invalid_call_is_marked(
    visit: Callable[..., Any], served: Gateway, upstream: ScriptedUpstream
) -> None:
    upstream.script(calls("Write", ['{"file_path": "a.txt"}']))
    page = visit(served, f"#{asked(served)}")
    card = page.get_by_role("article", name="Tool call Write")
    expect(card).to_contain_text("does not fit")
    expect(card.get_by_role("list", name="Does not fit its schema")).to_contain_text("content")
    expect(page.get_by_role("listbox").get_by_role("option")).to_contain_text("1 invalid")


def test_a_cut_call_is_never_shown_as_complete(
    visit: Callable[..., Any], served: Gateway, upstream: ScriptedUpstream
) -> None:
    upstream.script(calls("Bash", ['{"command": "rm -rf ./bui'])[:3])
    page = visit(served, f"#{asked(served)}")
    expect(page.get_by_role("alert")).to_be_visible()
    card = page.get_by_role("article", name="Tool call Bash")
    expect(card).to_contain_text("cut off")
    expect(card).not_to_contain_text("Fits the schema")


def test_arguments_that_are_not_json_are_compared_by_word(
    visit: Callable[..., Any], served: Gateway, upstream: ScriptedUpstream
) -> None:
    upstream.script(calls("Bash", ['```json\n{"command": "ls", "timeout": 30,}\n```']))
    page = visit(served, f"#{asked(served)}")
    card = page.get_by_role("article", name="Tool call Bash")
    expect(card.locator("pre del").first).to_contain_text("json")
    expect(card).to_contain_text("Fits the schema")


def test_both_timelines_are_aligned(visit: Callable[..., Any], served: Gateway, mended: str) -> None:
    page = visit(served, f"#{mended}")
    panel = tab(page, "timeline")
    expect(panel.get_by_role("columnheader", name="from the upstream · openai-chat")).to_be_visible()
    expect(panel.get_by_role("columnheader", name="to the client · anthropic")).to_be_visible()
    came, went = panel.locator(".from-upstream .part.arguments"), panel.locator(".to-client .part.arguments")
    expect(came).to_have_count(4)
    expect(went).to_have_count(1)
    expect(went).to_contain_text('{"command": "ls -la src", "timeout": 30}')
    last = panel.get_by_role("row").filter(has=page.locator(".to-client .part.arguments"))
    expect(last).to_contain_text('0"}')  # it was sent with the fragment that completed it
    went.click()
    expect(panel.locator(".frame[open]")).to_contain_text('"input_json_delta"')


def test_the_request_before_and_after(visit: Callable[..., Any], served: Gateway, mended: str) -> None:
    page = visit(served, f"#{mended}/request")
    changes = page.get_by_role("region", name="Fields of the request").get_by_role("listitem")
    expect(changes.filter(has_text="top_k")).to_contain_text("droppedthis upstream has no top_k")
    expect(changes.filter(has_text="stop_sequences")).to_contain_text("→ stop")
    expect(changes.filter(has_text="max_tokens")).to_contain_text("unchanged")
    expect(changes.filter(has_text="tools")).to_contain_text("rewritten")
    client = page.get_by_role("region", name="Request from the client")
    expect(client).to_contain_text("POST /v1/messages")
    expect(client.locator("[data-marked=warn]")).to_contain_text("top_k")
    upstream = page.get_by_role("region", name="Request to the upstream")
    expect(upstream).to_contain_text("/chat/completions")
    expect(upstream).not_to_contain_text("top_k")


def test_the_bytes_are_one_click_away(visit: Callable[..., Any], served: Gateway, mended: str) -> None:
    page = visit(served, f"#{mended}")
    panel = tab(page, "raw")
    came = panel.get_by_role("region", name="3. From the upstream")
    expect(came).to_contain_text('data: {"id": "c", "model": "m", "choices"')
    expect(panel.get_by_role("region", name="4. To the client")).to_contain_text("event: content_block_delta")


def test_replay_gives_the_same_bytes_and_other_protocols(
    visit: Callable[..., Any], served: Gateway, mended: str
) -> None:
    page = visit(served, f"#{mended}")
    panel = tab(page, "replay")
    panel.get_by_role("button", name="Replay").click()
    expect(panel.get_by_role("status")).to_contain_text("The same bytes as in the original answer")
    panel.get_by_label("Answer for").select_option("gemini")
    panel.get_by_role("button", name="Replay").click()
    expect(panel.get_by_role("status")).to_contain_text("for gemini")
    expect(panel.get_by_role("group", name="Frames")).to_contain_text("functionCall")


def test_the_copied_curl_line_repeats_the_request(
    visit: Callable[..., Any], served: Gateway, mended: str
) -> None:
    page = visit(served, f"#{mended}")
    page.get_by_role("button", name="curl").click()
    expect(page.get_by_text("curl line copied")).to_be_visible()
    words = shlex.split(page.evaluate("navigator.clipboard.readText()").replace("\\\n", " "))
    assert words[:5] == ["curl", "-sN", "-g", "-X", "POST"]
    assert words[5] == f"{served.url}/v1/messages"
    assert "x-api-key: $DRAGOMAN_KEY" in words
    assert json.loads(words[words.index("--data-raw") + 1])["model"] == "qwen"


def test_an_exchange_can_be_saved_as_a_recording(
    visit: Callable[..., Any], served: Gateway, mended: str, tmp_path: Path
) -> None:
    page = visit(served, f"#{mended}")
    with page.expect_download() as download:
        page.get_by_role("button", name="save").click()
    assert mended in download.value.suggested_filename
    download.value.save_as(tmp_path / "recording")
    assert (tmp_path / "recording").stat().st_size > 100


def test_model_output_is_shown_as_text(
    visit: Callable[..., Any], served: Gateway, upstream: ScriptedUpstream
) -> None:
    arguments = json.dumps({"prompt": HOSTILE, "timeout": "5", HOSTILE: [HOSTILE]})
    upstream.script(calls("Bash", [arguments], text=HOSTILE))
    id = asked(served, HOSTILE[:60].replace("/", ""), messages=[{"role": "user", "content": HOSTILE}])
    page = visit(served, f"#{id}")
    expect(page.locator(".prose")).to_have_text(HOSTILE)
    expect(page.locator(".line.now").first).to_contain_text("<script>window.pwned=2</script>")
    for name in ("timeline", "request", "raw", "replay", "answer"):
        tab(page, name)
        for _ in range(3):  # an opened element may contain more closed ones
            page.evaluate("document.querySelectorAll('#panel details').forEach((one) => (one.open = true))")
            page.wait_for_timeout(50)
    page.keyboard.press("Escape")
    expect(page.get_by_role("option").first).to_contain_text("<img src=x onerror")
    page.wait_for_timeout(100)
    assert page.evaluate("window.pwned") is None
    strange = "#main img, #main script, #main iframe, #main a, #main style, #main [onerror], #main [onload]"
    assert page.locator(strange).count() == 0


def test_a_megabyte_of_arguments_is_folded(
    visit: Callable[..., Any], served: Gateway, upstream: ScriptedUpstream
) -> None:
    content = "".join(
        f"line {number}: the quick brown fox jumps over the lazy dog\n" for number in range(20_000)
    )
    text = json.dumps({"path": "/tmp/big.txt", "content": content})
    upstream.script(calls("Write", [text[at : at + 8192] for at in range(0, len(text), 8192)]))
    page = visit(served, f"#{asked(served)}")
    card = page.get_by_role("article", name="Tool call Write")
    expect(card).to_contain_text("1.1 MB")
    expect(card.locator(".line.now")).to_contain_text('"file_path"')
    for name in ("timeline", "request", "raw", "answer"):
        tab(page, name)
        assert len(page.evaluate("document.querySelector('#panel').textContent")) < 400_000
    button = card.get_by_role("button", name="Show all of this string")
    expect(button).to_contain_text("20,001 lines")
    button.click()
    expect(card).to_contain_text("line 19999:")
    assert card.locator(".block").text_content() == content


@pytest.fixture
def locked(loop: Loop, upstream: ScriptedUpstream) -> Iterator[Gateway]:
    with gateway(config(upstream, f'keys = ["{KEY}"]'), loop) as running:
        yield running


def test_a_key_is_asked_for_once_and_stays_in_the_tab(visit: Callable[..., Any], locked: Gateway) -> None:
    ask(locked)
    page = visit(locked, quiet=False)  # the console reports a 401 as an error
    dialog = page.get_by_role("dialog", name="This gateway needs a key")
    dialog.get_by_label("Key").fill("wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_text("The gateway refused that key")).to_be_visible()
    page.get_by_role("dialog").get_by_label("Key").fill(KEY)
    page.keyboard.press("Enter")
    expect(page.get_by_text("No exchanges yet")).to_be_visible()
    expect(page.locator("#live")).to_have_text("live")
    page.reload()
    expect(page.get_by_text("No exchanges yet")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert KEY not in page.url
    assert page.evaluate("JSON.stringify(localStorage) + document.cookie") == "{}"


def test_dropped_bytes_are_reported_as_dropped(
    visit: Callable[..., Any], served: Gateway, mended: str
) -> None:
    served.state.observed.tap.ring.resize(0)
    page = visit(served, f"#{mended}", quiet=False)
    card = page.get_by_role("article", name="Tool call Bash")
    expect(card.locator(".line.now").first).to_contain_text('"command"')
    expect(tab(page, "timeline")).to_contain_text("no longer has the bytes")
    expect(page.get_by_role("button", name="curl")).to_be_disabled()


def test_a_running_exchange_is_updated_live(
    visit: Callable[..., Any], served: Gateway, upstream: ScriptedUpstream
) -> None:
    gate = threading.Event()
    upstream.script(held(calls("Bash", MENDED), gate, 5))
    page = visit(served)
    expect(page.locator("#live")).to_have_text("live")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        answer = pool.submit(ask, served)
        page.get_by_role("option").first.click()
        card = page.get_by_role("article", name="Tool call Bash")
        expect(card).to_contain_text("arriving")
        gate.set()
        expect(card).to_contain_text("Fits the schema")
        assert answer.result().status == 200
