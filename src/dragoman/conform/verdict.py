"""Judge one answer: HTTP, the laws of its protocol, and its neutral form."""

from __future__ import annotations

from dataclasses import dataclass

from . import laws, neutral
from .laws import Complaints
from .laws.http import (
    STREAM_TYPE,
    HttpAnswer,
    check_content_type,
    check_declined,
    check_error_status,
    check_status,
    check_transfer,
)
from .shape import Neutral, UnreadableError


@dataclass(frozen=True, slots=True)
class Verdict:
    """The breaches in one answer, and its neutral form. `reduced` is None if the answer is not readable."""

    complaints: Complaints
    reduced: Neutral | None


def answer(protocol: str, got: HttpAnswer, *, stream: bool) -> Verdict:
    """Judge the answer to a valid request: it must be a legal stream or body with status 200."""
    complaints = Complaints()
    if got.status:
        check_status(got, complaints)
    return _judged(protocol, got, complaints, stream=stream)


def answer_or_error(protocol: str, got: HttpAnswer, *, stream: bool) -> Verdict:
    """Judge the answer to a request that may fail: an error in the protocol's form is also fine."""
    return _judged(protocol, got, Complaints(), stream=stream)


def declined(protocol: str, got: HttpAnswer) -> Verdict:
    """Judge the answer to an invalid request: it must be a 4xx with an error in the protocol's form."""
    complaints = Complaints()
    if got.status:
        check_declined(got, complaints)
    if got.status == 200:
        return Verdict(complaints, None)
    return _judged(protocol, got, complaints, stream=False)


def body(got: HttpAnswer) -> Complaints:
    """Judge a body that is not a model's answer: a list of models, a token count."""
    complaints = Complaints()
    check_transfer(got, complaints)
    if got.status:
        check_content_type(got, complaints, stream=False)
    return complaints


def _judged(protocol: str, got: HttpAnswer, complaints: Complaints, *, stream: bool) -> Verdict:
    streamed = stream and got.status == 200
    check_transfer(got, complaints)
    if not got.status:  # there was no HTTP answer
        return Verdict(complaints, None)
    if not got.cut or got.body:
        check_content_type(got, complaints, stream=streamed)
    _merge(complaints, laws.judge(protocol, got.body, stream=streamed))
    reduced = _reduced(protocol, got, stream=streamed)
    if (
        reduced is not None
        and reduced["error"] is not None
        and not streamed
        and not _is_an_answer(protocol, got)
    ):
        check_error_status(got, complaints)
    return Verdict(complaints, reduced)


def _reduced(protocol: str, got: HttpAnswer, *, stream: bool) -> Neutral | None:
    try:
        return neutral.reduce(protocol, got.body, stream=stream)
    except UnreadableError:
        return None


def _is_an_answer(protocol: str, got: HttpAnswer) -> bool:
    """Is this failed body an answer with status 200? A Responses answer can have the status `failed`."""
    mark = laws.judge_of(protocol).failed_answer
    return mark is not None and mark in got.body


def _merge(complaints: Complaints, more: Complaints) -> None:
    complaints.seen |= more.seen
    complaints.found += more.found


__all__ = ["STREAM_TYPE", "Verdict", "answer", "answer_or_error", "body", "declined"]
