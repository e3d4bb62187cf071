"""The trials any endpoint can be put to: a handful of real requests, each before all judges that apply."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import jsonschema_rs
import msgspec

from ..model.messages import Request
from ..protocols.base import ClientProtocol
from ..protocols.registry import client_protocol
from . import models, questions, verdict
from .client import Asker
from .laws import Complaints, Law
from .laws.http import Got
from .shape import Json, Neutral, load_object, parse_object
from .trial import Trial
from .verdict import Verdict

ANSWERED = Law("says-something", "an answer that ends well says something")
NAMED = Law("calls-declared-tools", "only tools the client declared are called")
FITS = Law("call-fits-schema", "a finished call fits the schema the client declared")
CALLED = Law("calls-when-told", "a client that requires a call gets one", firm=False)
PARALLEL = Law("parallel-calls", "two calls asked for in one turn come in one turn", firm=False)
TOLD_OF_CUT = Law("told-of-cut", "an answer cut off at max_tokens says so", firm=False)
COUNTED = Law("count-tokens", "a count of tokens is a whole number above zero")
LISTED = Law("models-list", "the list of models names them by id, in the protocol's form", firm=False)

LAWS = (ANSWERED, NAMED, FITS, CALLED, PARALLEL, TOLD_OF_CUT, COUNTED, LISTED)

_MISSING = (404, 405, 501)
_LIMITED = (429, 529)
_VALIDATOR = jsonschema_rs.validator_for(questions.WEATHER.schema or {})


@dataclass(slots=True)
class Examination:
    """One endpoint under trial, and the answers that later questions build on."""

    asker: Asker
    model: str
    answers: dict[str, Got] = field(default_factory=dict[str, Got])
    wants_key: str = ""
    """It declined us for want of a key: nothing more is to be learned."""

    @property
    def protocol(self) -> str:
        return self.asker.protocol

    async def ask(self, trial: Trial, request: Request) -> Verdict | None:
        """The verdict on the answer; None where the endpoint would not answer now."""
        got = await self.asker.ask(request)
        trial.seconds = got.seconds
        self.answers[trial.name] = got
        if got.status in (401, 403):
            trial.complaints = verdict.declined(self.protocol, got).complaints
            self.wants_key = f"status {got.status}"
            return None
        if got.status in _LIMITED:
            trial.skipped = f"it has had enough of us (status {got.status})"
            return None
        found = verdict.answer(self.protocol, got, stream=request.stream)
        trial.complaints = found.complaints
        return found

    async def post(self, trial: Trial, path: str, body: bytes) -> Got:
        got = await self.asker.post(path, body)
        trial.seconds = got.seconds
        return got


Run = Callable[[Examination, Trial], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Probe:
    """A named trial, and the protocols it means something in."""

    name: str
    says: str
    run: Run
    applies: Callable[[ClientProtocol], bool] = lambda client: True


async def _text(it: Examination, trial: Trial, *, stream: bool) -> None:
    found = await it.ask(trial, questions.text(it.model).changed(stream=stream))
    if found is not None and found.said is not None:
        _says_something(trial.complaints, found.said)


async def _tool(it: Examination, trial: Trial, *, stream: bool) -> None:
    found = await it.ask(trial, questions.tool(it.model).changed(stream=stream))
    if found is not None and found.said is not None:
        _calls_fit(trial.complaints, found.said)
        _at_least(trial.complaints, found.said, 1, CALLED)


async def _parallel(it: Examination, trial: Trial) -> None:
    found = await it.ask(trial, questions.parallel(it.model))
    if found is not None and found.said is not None:
        _calls_fit(trial.complaints, found.said)
        _at_least(trial.complaints, found.said, 2, PARALLEL)


async def _result(it: Examination, trial: Trial, *, of: str, asked: Callable[[str], Request]) -> None:
    before = it.answers.get(of)
    usable = before is not None and before.status == 200 and not before.cut
    request = questions.results(asked(it.model), it.protocol, before.body) if before and usable else None
    if request is None:
        trial.skipped = f"{of} made no call to answer"
        return
    found = await it.ask(trial, request)
    if found is not None and found.said is not None:
        _says_something(trial.complaints, found.said)


async def _cut(it: Examination, trial: Trial) -> None:
    found = await it.ask(trial, questions.long_text(it.model))
    if found is None or found.said is None or found.said["stop"] == "error":
        return
    stop = found.said["stop"]
    trial.complaints.at("stop")
    trial.complaints.unless(stop == "max_tokens", TOLD_OF_CUT, f"it stopped with {stop}")


async def _unknown_model(it: Examination, trial: Trial) -> None:
    asked = questions.text("no-such-model-0f9c").changed(stream=False)
    got = await it.asker.ask(asked)
    trial.seconds = got.seconds
    trial.complaints = verdict.answer_or_error(it.protocol, got, stream=False).complaints


async def _not_json(it: Examination, trial: Trial) -> None:
    path, body = it.asker.written(questions.text(it.model).changed(stream=False))
    got = await it.post(trial, path, msgspec.json.encode(body)[:-2])
    trial.complaints = verdict.declined(it.protocol, got).complaints


async def _no_messages(it: Examination, trial: Trial) -> None:
    path, body = it.asker.written(questions.text(it.model).changed(stream=False))
    field = next(name for name, value in body.items() if isinstance(value, list))
    got = await it.post(trial, path, msgspec.json.encode(body | {field: 7}))
    trial.complaints = verdict.declined(it.protocol, got).complaints


async def _count(it: Examination, trial: Trial) -> None:
    path, body = it.asker.written(questions.text(it.model).changed(stream=False))
    counting = client_protocol(it.protocol).counting
    assert counting is not None
    asked = msgspec.json.encode(counting.body(body, it.model))
    got = await it.post(trial, counting.path(path), asked)
    if got.status in _MISSING:
        trial.skipped = f"not offered (status {got.status})"
        return
    trial.complaints = verdict.body(got)
    value = _object(got.body).get(counting.member)
    trial.complaints.at("body", got.body, 0)
    good = got.status == 200 and type(value) is int and value > 0
    trial.complaints.unless(good, COUNTED, f"status {got.status}, {counting.member} is {value!r}")


async def _models(it: Examination, trial: Trial) -> None:
    got = await it.asker.get(client_protocol(it.protocol).listing.path)
    trial.seconds = got.seconds
    if got.status in _MISSING:
        trial.skipped = f"not offered (status {got.status})"
        return
    trial.complaints = verdict.body(got)
    trial.complaints.at("body", got.body, 0)
    trial.complaints.unless(models.listed(it.protocol, got.body), LISTED, "no model is named")


def _says_something(complaints: Complaints, said: Neutral) -> None:
    if said["stop"] == "error":
        return
    complaints.at("answer")
    complaints.unless(said["text"] or said["refusal"] or said["tool_calls"], ANSWERED, "it says nothing")


def _calls_fit(complaints: Complaints, said: Neutral) -> None:
    if said["stop"] in ("error", "max_tokens"):
        return
    for call in said["tool_calls"]:
        complaints.at("call", call["raw"].encode())
        complaints.unless(call["name"] == questions.WEATHER.name, NAMED, f"a call of {call['name']!r}")
        value = call["arguments"] if not isinstance(call["arguments"], str) else parse_object(call["raw"])
        wrong = next(_VALIDATOR.iter_errors(value), None)
        complaints.unless(wrong is None, FITS, f"{call['name']}: {wrong.message if wrong else ''}")


def _at_least(complaints: Complaints, said: Neutral, count: int, law: Law) -> None:
    if said["stop"] == "error":
        return
    complaints.at("answer")
    found = len(said["tool_calls"])
    complaints.unless(found >= count, law, f"{found} calls, want {count}")


def _object(body: bytes) -> Json:
    try:
        return load_object(body)
    except ValueError:
        return {}


def _with(run: Callable[..., Awaitable[None]], **settings: object) -> Run:
    return lambda it, trial: run(it, trial, **settings)


def _after(of: str, asked: Callable[[str], Request]) -> Run:
    return _with(_result, of=of, asked=asked)


def _echoes(client: ClientProtocol) -> bool:
    """Do answers go back as they came? Not where they are only a form of answers."""
    return not client.asked_in


def _counts(client: ClientProtocol) -> bool:
    return bool(client.endpoints.counts)


PROBES = (
    Probe("text-stream", "a question, streamed", _with(_text, stream=True)),
    Probe("text-body", "a question, answered in one body", _with(_text, stream=False)),
    Probe("tool-stream", "a call that is required, streamed", _with(_tool, stream=True)),
    Probe("tool-body", "a call that is required, in one body", _with(_tool, stream=False)),
    Probe("tool-result", "the call's result", _after("tool-stream", questions.tool), _echoes),
    Probe("parallel-stream", "two calls in one turn, streamed", _parallel),
    Probe("parallel-results", "both results", _after("parallel-stream", questions.parallel), _echoes),
    Probe("cut-stream", "an answer that hits max_tokens, streamed", _cut),
    Probe("unknown-model", "a model that does not exist: an error, or an answer", _unknown_model),
    Probe("not-json", "a body that is not JSON", _not_json),
    Probe("bad-field", "a field of the wrong type", _no_messages),
    Probe("count-tokens", "a count of tokens", _count, _counts),
    Probe("models", "the list of models", _models),
)


def probes_of(protocol: str) -> list[Probe]:
    client = client_protocol(protocol)
    return [probe for probe in PROBES if probe.applies(client)]


async def examine(it: Examination, probe: Probe) -> Trial:
    """Put the endpoint to one trial."""
    trial = Trial(probe.name, probe.says)
    if it.wants_key:
        trial.skipped = "needs a key"
    else:
        await probe.run(it, trial)
    return trial
