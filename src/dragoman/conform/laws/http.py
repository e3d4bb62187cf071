"""The laws around the bytes: how HTTP carries an answer, and declines what cannot be answered."""

from __future__ import annotations

from dataclasses import dataclass

from .base import Complaints, Law

TRANSFER = Law("clean-transfer", "an answer is sent to the end that HTTP promised, in good time")
STATUS = Law("status-200", "a request in good order gets status 200")
CONTENT_TYPE = Law("content-type", "streams are text/event-stream, bodies are application/json")
ERROR_STATUS = Law("error-status", "an error instead of an answer has a status of 400 or more")
DECLINED = Law("declines-malformed", "a request that cannot be understood gets a 4xx status")

LAWS = (TRANSFER, STATUS, CONTENT_TYPE, ERROR_STATUS, DECLINED)

STREAM_TYPE = "text/event-stream"
JSON_TYPE = "application/json"


@dataclass(frozen=True, slots=True)
class Got:
    """What came back: as much of the body as was sent, and why it is not all of it."""

    status: int
    content_type: str
    body: bytes
    cut: str = ""
    seconds: float = 0.0


def check_transfer(got: Got, complaints: Complaints) -> None:
    complaints.at_end(got.body)
    complaints.unless(not got.cut, TRANSFER, got.cut)


def check_status(got: Got, complaints: Complaints) -> None:
    complaints.at("status", got.body, 0)
    complaints.unless(got.status == 200, STATUS, f"status {got.status}")


def check_content_type(got: Got, complaints: Complaints, *, stream: bool) -> None:
    wanted = STREAM_TYPE if stream else JSON_TYPE
    complaints.at("content-type", got.body, 0)
    complaints.unless(got.content_type == wanted, CONTENT_TYPE, f"{got.content_type or 'none'}, not {wanted}")


def check_error_status(got: Got, complaints: Complaints) -> None:
    complaints.at("status", got.body, 0)
    complaints.unless(got.status >= 400, ERROR_STATUS, f"an error with status {got.status}")


def check_declined(got: Got, complaints: Complaints) -> None:
    complaints.at("status", got.body, 0)
    complaints.unless(400 <= got.status < 500, DECLINED, f"status {got.status}")
