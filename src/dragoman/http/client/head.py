"""The head of an answer: what reads it, and its fields for who asks for them."""

from __future__ import annotations

from contextlib import suppress

from httptools import HttpParserError, HttpResponseParser

_SUCCESS = b"HTTP/1.1 2"
_END = b"\r\n\r\n"
_CODED = b"\ncontent-encoding"


def parser_for(listener: object) -> HttpResponseParser:
    """What reads answers, and calls `listener`."""
    parser = HttpResponseParser(listener)
    # Lines without a carriage return, and chunk sizes padded with spaces: some servers have them.
    parser.set_dangerous_leniencies(lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True)
    return parser


def is_plain(head: bytes) -> bool:
    """Is the body surely not coded? Of most answers a glance at the head, and what came with it, tells."""
    # Before a success stands nothing else that might seem to be its head. One whose lines have no carriage
    # return ends before what is found here: more is looked at, and that can only make it doubtful.
    end = head.find(_END)
    # Not `in`: Python first tries to take such bytes for a number.
    return end > 0 and head.startswith(_SUCCESS) and head[:end].lower().find(_CODED) < 0


def fields_of(head: bytes) -> dict[str, str]:
    """Names in lower case; of one that came twice the last value. What follows the head is passed over."""
    fields = _Fields()
    with suppress(HttpParserError):
        fields.parser.feed_data(head)
    del fields.parser  # they hold each other
    return fields.found


class _Fields:
    """Hears of the fields of a head."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self.parser = parser_for(self)

    def on_message_begin(self) -> None:
        self.found = {}

    def on_header(self, name: bytes, value: bytes) -> None:
        self.found[name.decode("latin-1").lower()] = value.decode(errors="replace")

    def on_headers_complete(self) -> None:
        if self.parser.get_status_code() >= 200:  # below: the head follows
            raise ValueError  # so that nothing else is read
