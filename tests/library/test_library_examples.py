"""The manual's examples, run unchanged against a scripted model, print what the page says."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from support import samples_anthropic, samples_chat, samples_gemini, samples_responses
from support.scenarios import Scenario, Text, ToolCall
from support.scripted_server import Asked, scripted_server

ROOT = Path(__file__).parents[2]
_BLOCKS = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
_RENDERERS: dict[str, ModuleType] = {
    "/messages": samples_anthropic,
    "/chat/completions": samples_chat,
    "/responses": samples_responses,
    "enerateContent": samples_gemini,
}
_RESULTS = ("tool_result", '"role": "tool"', "function_call_output", "functionResponse")


def model(asked: Asked) -> bytes:
    """Call a tool once, misnamed if the answer is not streamed, and then answer."""
    body = json.dumps(asked.body)
    stream = asked.body.get("stream") or "streamGenerate" in asked.path
    if any(mark in body for mark in _RESULTS):
        answer = Scenario((Text(("It is 18 degrees ", "in Paris.")),), "end_turn")
    elif "Mars" in body:
        answer = Scenario((ToolCall("get_time", ('{"zone": "Mars"}',)),), "tool_use")
    else:
        name = "city" if stream else "City"
        answer = Scenario((ToolCall("get_weather", (f'{{"{name}": "Par', 'is"}')),), "tool_use")
    renderer = next(r for mark, r in _RENDERERS.items() if mark in asked.path)
    return renderer.stream(answer) if stream else renderer.whole(answer)


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with scripted_server() as server:
        server.model = model
        for name, value in {
            "ANTHROPIC_BASE_URL": server.url,
            "OPENAI_BASE_URL": f"{server.url}/v1",
            "GOOGLE_GEMINI_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "k",
            "OPENAI_API_KEY": "k",
            "GEMINI_API_KEY": "k",
        }.items():
            monkeypatch.setenv(name, value)
        yield


@pytest.mark.usefixtures("provider")
@pytest.mark.parametrize(
    ("page", "examples"),
    [("README.md", 1), ("docs/how-to/agent-loop.md", 7), ("docs/reference/library.md", 5)],
)
def test_the_examples_print_what_the_page_says(
    page: str, examples: int, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = _BLOCKS.findall((ROOT / page).read_text())
    assert len(blocks) == examples
    names: dict[str, object] = {"__name__": "example"}
    for code, printed in blocks:
        exec(compile(code, page, "exec"), names)
        assert capsys.readouterr().out == printed, code
