"""The trials for any endpoint: a few real requests, each judged by all judges that apply."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import jsonschema_rs
import msgspec

from ..model.messages import Request
from ..protocols.base import ClientProtocol
from ..protocols.registry import client_protocol
from . import models, sample_requests, verdict
from .client import EndpointClient
from .laws import Complaints, Law
from .laws.http import HttpAnswer
from .shape import Json, Neutral, load_object, parse_object
from .trial import Trial
from .verdict import Verdict

ANSWERED = Law("says-something", "an answer without an error is not empty")
NAMED = Law("calls-declared-tools", "only declared tools are called")
FITS = Law("call-fits-schema", "the arguments of a finished call are valid by the tool's schema")
CALLED = Law("calls-when-told", "tool_choice `required` gives a call", firm=False)
PARALLEL = Law("parallel-calls", "two calls requested for one turn come in one turn", firm=False)
TOLD_OF_CUT = Law("told-of-cut", "an answer cut off at max_tokens has that stop reason", firm=False)
COUNTED = Law("count-tokens", "a token count is a whole number above zero")
LISTED = Law(
    "models-list", "the list of models has the protocol's form, with the id of each model", firm=False
)

LAWS = (ANSWERED, NAMED, FITS, CALLED, PARALLEL, TOLD_OF_CUT, COUNTED, LISTED)

_MISSING = (404, 405, 501)
_LIMITED = (429, 529)
_VALIDATOR = jsonschema_rs.validator_for(sample_requests.WEATHER.schema or {})


@dataclass(slots=True)
class Examination:
    """The tested endpoint, and its answers so far: later probes send them back."""

    endpoint: EndpointClient
    model: str
    answers: dict[str, HttpAnswer] = field(default_factory=dict[str, HttpAnswer])
    wants_key: str = ""
    """Set if the endpoint refused a request without a key: the remaining probes are skipped."""

    @property
    def protocol(self) -> str:
        return self.endpoint.protocol

    async def ask(self, trial: Trial, request: Request) -> Verdict | None:
        """Send the request and judge the answer. None if the endpoint needs a key or limits the rate."""
        got = await self.endpoint.ask(request)
        trial.seconds = got.seconds
        self.answers[trial.name] = got
        if got.status in (401, 403):
            trial.complaints = verdict.declined(self.protocol, got).complaints
            self.wants_key = f"status {got.status}"
            return None
        if got.status in _LIMITED:
            trial.skipped = f"rate limited (status {got.status})"
            return None
        found = verdict.answer(self.protocol, got, stream=request.stream)
        trial.complaints = found.complaints
        return found

    async def post(self, trial: Trial, path: str, body: bytes) -> HttpAnswer:
        got = await self.endpoint.post(path, body)
        trial.seconds = got.seconds
        return got


Run = Callable[[Examination, Trial], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Probe:
    """A named trial, and the protocols that it applies to."""

    name: str
    says: str
    run: Run
    applies: Callable[[ClientProtocol], bool] = lambda client: True


async def _text(exam: Examination, trial: Trial, *, stream: bool) -> None:
    found = await exam.ask(trial, sample_requests.text(exam.model).changed(stream=stream))
    if found is not None and found.reduced is not None:
        _says_something(trial.complaints, found.reduced)


async def _tool(exam: Examination, trial: Trial, *, stream: bool) -> None:
    found = await exam.ask(trial, sample_requests.tool(exam.model).changed(stream=stream))
    if found is not None and found.reduced is not None:
        _calls_fit(trial.complaints, found.reduced)
        _at_least(trial.complaints, found.reduced, 1, CALLED)


async def _parallel(exam: Examination, trial: Trial) -> None:
    found = await exam.ask(trial, sample_requests.parallel(exam.model))
    if found is not None and found.reduced is not None:
        _calls_fit(trial.complaints, found.reduced)
        _at_least(trial.complaints, found.reduced, 2, PARALLEL)


async def _result(exam: Examination, trial: Trial, *, of: str, asked: Callable[[str], Request]) -> None:
    before = exam.answers.get(of)
    usable = before is not None and before.status == 200 and not before.cut
    request = (
        sample_requests.results(asked(exam.model), exam.protocol, before.body) if before and usable else None
    )
    if request is None:
        trial.skipped = f"{of} made no call"
        return
    found = await exam.ask(trial, request)
    if found is not None and found.reduced is not None:
        _says_something(trial.complaints, found.reduced)


async def _cut(exam: Examination, trial: Trial) -> None:
    found = await exam.ask(trial, sample_requests.long_text(exam.model))
    if found is None or found.reduced is None or found.reduced["stop"] == "error":
        return
    stop = found.reduced["stop"]
    trial.complaints.at("stop")
    trial.complaints.unless(stop == "max_tokens", TOLD_OF_CUT, f"it stopped with {stop}")


async def _unknown_model(exam: Examination, trial: Trial) -> None:
    asked = sample_requests.text("no-such-model-0f9c").changed(stream=False)
    got = await exam.endpoint.ask(asked)
    trial.seconds = got.seconds
    trial.complaints = verdict.answer_or_error(exam.protocol, got, stream=False).complaints


async def _not_json(exam: Examination, trial: Trial) -> None:
    path, body = exam.endpoint.encode_request(sample_requests.text(exam.model).changed(stream=False))
    got = await exam.post(trial, path, msgspec.json.encode(body)[:-2])
    trial.complaints = verdict.declined(exam.protocol, got).complaints


async def _no_messages(exam: Examination, trial: Trial) -> None:
    path, body = exam.endpoint.encode_request(sample_requests.text(exam.model).changed(stream=False))
    field = next(name for name, value in body.items() if isinstance(value, list))
    got = await exam.post(trial, path, msgspec.json.encode(body | {field: 7}))
    trial.complaints = verdict.declined(exam.protocol, got).complaints


async def _count(exam: Examination, trial: Trial) -> None:
    path, body = exam.endpoint.encode_request(sample_requests.text(exam.model).changed(stream=False))
    counting = client_protocol(exam.protocol).counting
    assert counting is not None
    asked = msgspec.json.encode(counting.body(body, exam.model))
    got = await exam.post(trial, counting.path(path), asked)
    if got.status in _MISSING:
        trial.skipped = f"not offered (status {got.status})"
        return
    trial.complaints = verdict.body(got)
    value = _object(got.body).get(counting.member)
    trial.complaints.at("body", got.body, 0)
    good = got.status == 200 and type(value) is int and value > 0
    trial.complaints.unless(good, COUNTED, f"status {got.status}, {counting.member} is {value!r}")


async def _models(exam: Examination, trial: Trial) -> None:
    got = await exam.endpoint.get(client_protocol(exam.protocol).listing.path)
    trial.seconds = got.seconds
    if got.status in _MISSING:
        trial.skipped = f"not offered (status {got.status})"
        return
    trial.complaints = verdict.body(got)
    trial.complaints.at("body", got.body, 0)
    trial.complaints.unless(models.listed(exam.protocol, got.body), LISTED, "no model is named")


def _says_something(complaints: Complaints, reduced: Neutral) -> None:
    if reduced["stop"] == "error":
        return
    complaints.at("answer")
    complaints.unless(
        reduced["text"] or reduced["refusal"] or reduced["tool_calls"], ANSWERED, "it says nothing"
    )


def _calls_fit(complaints: Complaints, reduced: Neutral) -> None:
    if reduced["stop"] in ("error", "max_tokens"):
        return
    for call in reduced["tool_calls"]:
        complaints.at("call", call["raw"].encode())
        complaints.unless(call["name"] == sample_requests.WEATHER.name, NAMED, f"a call of {call['name']!r}")
        value = call["arguments"] if not isinstance(call["arguments"], str) else parse_object(call["raw"])
        wrong = next(_VALIDATOR.iter_errors(value), None)
        complaints.unless(wrong is None, FITS, f"{call['name']}: {wrong.message if wrong else ''}")


def _at_least(complaints: Complaints, reduced: Neutral, count: int, law: Law) -> None:
    if reduced["stop"] == "error":
        return
    complaints.at("answer")
    found = len(reduced["tool_calls"])
    complaints.unless(found >= count, law, f"{found} calls, want {count}")


def _object(body: bytes) -> Json:
    try:
        return load_object(body)
    except ValueError:
        return {}


def _with(run: Callable[..., Awaitable[None]], **settings: object) -> Run:
    return lambda exam, trial: run(exam, trial, **settings)


def _after(of: str, asked: Callable[[str], Request]) -> Run:
    return _with(_result, of=of, asked=asked)


def _echoes(client: ClientProtocol) -> bool:
    """Can an answer be sent back in the next request? Not for a protocol that only has answers (`cursor`)."""
    return not client.asked_in


def _counts(client: ClientProtocol) -> bool:
    return bool(client.endpoints.counts)


PROBES = (
    Probe("text-stream", "a question, streamed", _with(_text, stream=True)),
    Probe("text-body", "a question, answered in one body", _with(_text, stream=False)),
    Probe("tool-stream", "a required call, streamed", _with(_tool, stream=True)),
    Probe("tool-body", "a required call, in one body", _with(_tool, stream=False)),
    Probe(
        "tool-result",
        "the next turn, with the call's result",
        _after("tool-stream", sample_requests.tool),
        _echoes,
    ),
    Probe("parallel-stream", "two calls in one turn, streamed", _parallel),
    Probe(
        "parallel-results",
        "the next turn, with both results",
        _after("parallel-stream", sample_requests.parallel),
        _echoes,
    ),
    Probe("cut-stream", "an answer that hits max_tokens, streamed", _cut),
    Probe("unknown-model", "a model that does not exist: an error, or an answer", _unknown_model),
    Probe("not-json", "a body that is not JSON", _not_json),
    Probe("bad-field", "a field of the wrong type", _no_messages),
    Probe("count-tokens", "the token count of a request", _count, _counts),
    Probe("models", "the list of models", _models),
)


def probes_of(protocol: str) -> list[Probe]:
    client = client_protocol(protocol)
    return [probe for probe in PROBES if probe.applies(client)]


async def examine(exam: Examination, probe: Probe) -> Trial:
    """Run one trial."""
    trial = Trial(probe.name, probe.says)
    if exam.wants_key:
        trial.skipped = "needs a key"
    else:
        await probe.run(exam, trial)
    return trial
