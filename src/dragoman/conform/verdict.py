"""One answer before all its judges: HTTP, the laws of its protocol, and what it says in neutral form."""

from __future__ import annotations

from dataclasses import dataclass

from . import laws, neutral
from .laws import Complaints
from .laws.http import (
    STREAM_TYPE,
    Got,
    check_content_type,
    check_declined,
    check_error_status,
    check_status,
    check_transfer,
)
from .shape import Neutral, UnreadableError


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found out about one answer. `said` is None where nobody could understand it."""

    complaints: Complaints
    said: Neutral | None


def answer(protocol: str, got: Got, *, stream: bool) -> Verdict:
    """The answer to a request in good order: a legal stream or body with status 200."""
    complaints = Complaints()
    if got.status:
        check_status(got, complaints)
    return _judged(protocol, got, complaints, stream=stream)


def answer_or_error(protocol: str, got: Got, *, stream: bool) -> Verdict:
    """The answer to a request that may be declined: an error in the protocol's form is as good."""
    return _judged(protocol, got, Complaints(), stream=stream)


def declined(protocol: str, got: Got) -> Verdict:
    """The answer to a request that cannot be served: a 4xx and an error in the protocol's form."""
    complaints = Complaints()
    if got.status:
        check_declined(got, complaints)
    if got.status == 200:
        return Verdict(complaints, None)
    return _judged(protocol, got, complaints, stream=False)


def body(got: Got) -> Complaints:
    """A body that is no answer of a model: a list, a count."""
    complaints = Complaints()
    check_transfer(got, complaints)
    if got.status:
        check_content_type(got, complaints, stream=False)
    return complaints


def _judged(protocol: str, got: Got, complaints: Complaints, *, stream: bool) -> Verdict:
    streamed = stream and got.status == 200
    check_transfer(got, complaints)
    if not got.status:  # nothing came that could be called an answer
        return Verdict(complaints, None)
    if not got.cut or got.body:
        check_content_type(got, complaints, stream=streamed)
    _merge(complaints, laws.judge(protocol, got.body, stream=streamed))
    said = _said(protocol, got, stream=streamed)
    if said is not None and said["error"] is not None and not streamed and not _is_an_answer(protocol, got):
        check_error_status(got, complaints)
    return Verdict(complaints, said)


def _said(protocol: str, got: Got, *, stream: bool) -> Neutral | None:
    try:
        return neutral.reduce(protocol, got.body, stream=stream)
    except UnreadableError:
        return None


def _is_an_answer(protocol: str, got: Got) -> bool:
    """Some protocols also have answers that say of themselves that they failed."""
    mark = laws.judge_of(protocol).failed_answer
    return mark is not None and mark in got.body


def _merge(complaints: Complaints, more: Complaints) -> None:
    complaints.seen |= more.seen
    complaints.found += more.found


__all__ = ["STREAM_TYPE", "Verdict", "answer", "answer_or_error", "body", "declined"]
