"""An exchange leaves no reference cycles behind.

Only the garbage collector frees cycles, and its cost grows with the number of live objects. A gateway
without cycles hardly ever runs it.
"""

import gc
from collections import Counter
from collections.abc import Iterator

import pytest
from support.gateways import Gateway, before_a_chat_upstream
from support.plain_http import post

TOOL = {
    "type": "object",
    "properties": {"command": {"type": "string"}},
    "required": ["command"],
}
MESSAGES = [{"role": "user", "content": "Run the command ls -la"}]
ASKED = {
    "/v1/messages": {
        "max_tokens": 100,
        "messages": MESSAGES,
        "tools": [{"name": "Bash", "description": "Run a shell command", "input_schema": TOOL}],
    },
    "/v1/chat/completions": {
        "messages": MESSAGES,
        "tools": [{"type": "function", "function": {"name": "Bash", "parameters": TOOL}}],
    },
}


@pytest.fixture
def running() -> Iterator[Gateway]:
    with before_a_chat_upstream() as served:
        yield served


def left_by(served: Gateway, path: str, model: str, *, stream: bool) -> Counter[str]:
    """The Dragoman objects that some requests leave to the collector, by type name."""
    body = {"model": f"up/{model}", "stream": stream, **ASKED[path]}
    post(f"{served.url}{path}", body)
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for _ in range(3):
            post(f"{served.url}{path}", body)
        gc.collect()
        return Counter(
            type(thing).__qualname__ for thing in gc.garbage if type(thing).__module__.startswith("dragoman.")
        )
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("path", ASKED)
@pytest.mark.parametrize("model", ["demo", "demo-misnamed", "demo-500"])
def test_an_exchange_leaves_no_reference_cycles(
    running: Gateway, path: str, model: str, stream: bool
) -> None:
    assert left_by(running, path, model, stream=stream) == Counter()
