"""Token estimates are close to a tokenizer's count for every kind of prompt."""

import pytest

from dragoman.model.messages import Media, Message, Request, Text, ToolCall, ToolResult
from dragoman.routing.token_estimate import prompt_length, prompt_tokens, text_tokens

PROSE = "The interpreter carries every word between two courts that share no language, and loses none. "
# The count of OpenAI's o200k, and the allowed error: docs/explanation/token-estimates.md.
COUNTED = [
    (PROSE * 20, 341, 0.25),
    ('def feed(self, data: bytes) -> bytes:\\n    if self.over:\\n        return b""\\n' * 20, 461, 0.3),
    ('{"name": "Bash", "input": {"command": "ls -la /tmp", "timeout": 120000}}\\n' * 20, 560, 0.25),
    ("2026-11-15,1234,0.5678,42\\n" * 20, 340, 0.35),
    ("每个工具调用都完整、有效且只到达一次。" * 20, 280, 0.35),
]


@pytest.mark.parametrize(("text", "tokens", "off"), COUNTED)
def test_an_estimate_is_close_to_a_tokenizer(text: str, tokens: int, off: float) -> None:
    assert text_tokens(text) == pytest.approx(tokens, rel=off)


def test_all_of_a_prompt_counts() -> None:
    call = ToolCall(id="c", name="Bash", arguments='{"command": "ls"}')
    picture = Media(kind="image", media_type="image/png", data="x" * 9000)
    result = ToolResult(call_id="c", parts=(Text("a" * 1000), picture))
    said = (("user", Text("b" * 1000)), ("assistant", call), ("user", result))
    request = Request(model="m", messages=tuple(Message(role, (part,)) for role, part in said))
    assert prompt_length(request) == 2000 + len("Bash") + len(call.arguments)
    assert prompt_tokens(request) == pytest.approx(380 + 1500 + 12 + 7, abs=3)
    assert prompt_tokens(Request(model="m", messages=())) == 0
