"""The laws of HTTP: complete transfer, status and content type."""

from __future__ import annotations

from dataclasses import dataclass

from .base import Complaints, Law

TRANSFER = Law("clean-transfer", "the HTTP answer is complete and arrives in time")
STATUS = Law("status-200", "a valid request gets status 200")
# SDKs choose their parser by it.
CONTENT_TYPE = Law("content-type", "streams are text/event-stream, bodies are application/json")
# A 200 with an error body becomes an answer without content in OpenAI's and Anthropic's SDKs, and they do not
# retry.
ERROR_STATUS = Law("error-status", "an error instead of an answer has a status of 400 or more")
DECLINED = Law("declines-malformed", "an invalid request gets a 4xx status")

LAWS = (TRANSFER, STATUS, CONTENT_TYPE, ERROR_STATUS, DECLINED)

STREAM_TYPE = "text/event-stream"
JSON_TYPE = "application/json"


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """The endpoint's HTTP answer. `cut` says why the body is incomplete, if it is."""

    status: int
    content_type: str
    body: bytes
    cut: str = ""
    seconds: float = 0.0


def check_transfer(got: HttpAnswer, complaints: Complaints) -> None:
    complaints.at_end(got.body)
    complaints.unless(not got.cut, TRANSFER, got.cut)


def check_status(got: HttpAnswer, complaints: Complaints) -> None:
    complaints.at("status", got.body, 0)
    complaints.unless(got.status == 200, STATUS, f"status {got.status}")


def check_content_type(got: HttpAnswer, complaints: Complaints, *, stream: bool) -> None:
    wanted = STREAM_TYPE if stream else JSON_TYPE
    complaints.at("content-type", got.body, 0)
    complaints.unless(got.content_type == wanted, CONTENT_TYPE, f"{got.content_type or 'none'}, not {wanted}")


def check_error_status(got: HttpAnswer, complaints: Complaints) -> None:
    complaints.at("status", got.body, 0)
    complaints.unless(got.status >= 400, ERROR_STATUS, f"an error with status {got.status}")


def check_declined(got: HttpAnswer, complaints: Complaints) -> None:
    complaints.at("status", got.body, 0)
    complaints.unless(400 <= got.status < 500, DECLINED, f"status {got.status}")
