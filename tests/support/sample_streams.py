"""Well-formed answers of every protocol, as a correct upstream sends them.

`SAMPLES[protocol][kind]` has the stream, the same answer as a whole JSON body (None where the
protocol cannot say it in one), and its neutral form. A kind that a protocol has no way to say is
missing from its table: freeform calls exist only at OpenAI, interleaved calls only there too.
`ERRORS[protocol]` is an answer that failed before its first byte: a status and a body.
"""

from dataclasses import dataclass
from types import ModuleType

from dragoman.conform.shape import Neutral, ReducedAnswer

from . import samples_anthropic, samples_chat, samples_gemini, samples_responses
from .scenarios import CUSTOM_TOOL, ERROR_MESSAGE, SCENARIOS, TOOLS, Scenario
from .wires import ANTHROPIC, CHAT, GEMINI, RESPONSES

__all__ = ["CUSTOM_TOOL", "ERRORS", "KINDS", "SAMPLES", "TOOLS", "ErrorSample", "Sample"]


@dataclass(frozen=True, slots=True)
class Sample:
    stream: bytes
    whole: bytes | None
    expect: Neutral


@dataclass(frozen=True, slots=True)
class ErrorSample:
    status: int
    body: bytes
    expect: Neutral


_RENDERERS: dict[str, ModuleType] = {
    ANTHROPIC: samples_anthropic,
    CHAT: samples_chat,
    RESPONSES: samples_responses,
    GEMINI: samples_gemini,
}
KINDS = tuple(SCENARIOS)


def samples_of(renderer: ModuleType) -> dict[str, Sample]:
    """Every scenario that a protocol supports, as its renderer writes it."""
    said = {kind: scenario for kind, scenario in SCENARIOS.items() if renderer.can_say(kind)}
    return {kind: _sample(renderer, scenario) for kind, scenario in said.items()}


def _sample(renderer: ModuleType, scenario: Scenario) -> Sample:
    expect: ReducedAnswer = renderer.expect(scenario)
    return Sample(renderer.stream(scenario), renderer.whole(scenario), expect.as_dict())


def error_of(renderer: ModuleType) -> ErrorSample:
    """The answer that failed before its first byte."""
    answer = ReducedAnswer()
    answer.fail(ERROR_MESSAGE)
    return ErrorSample(renderer.ERROR_STATUS, renderer.ERROR_BODY, answer.as_dict())


SAMPLES: dict[str, dict[str, Sample]] = {name: samples_of(renderer) for name, renderer in _RENDERERS.items()}
ERRORS: dict[str, ErrorSample] = {name: error_of(renderer) for name, renderer in _RENDERERS.items()}
