"""Read the head of an answer line by line. The checks are stricter than libcurl's, and sizes have limits."""

from __future__ import annotations

import re

# Providers send a few kilobytes of headers. The limits keep a broken server from filling the memory.
_MAX_BYTES = 256 * 1024
_MAX_LINES = 256
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\0\r\n]*?)[ \t]*\r?\n?")
_STATUS = re.compile(rb"HTTP/[123](?:\.[01])? ([1-9][0-9]{2})(?: [^\r\n]*)?\r?\n?")
# Headers whose repeated lines form a list. Of all other headers, the last line counts.
_LISTS = {"content-encoding"}


class ResponseHead:
    """Takes lines until the head of the final answer is complete. Trailers are ignored."""

    __slots__ = ("_bytes", "_lines", "alone", "complete", "headers", "problem", "status")

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        """Names are in lower case."""
        self.complete = False
        self.problem = ""
        """What is wrong with the head. The text continues a sentence that begins with the upstream's name."""
        self.alone = True
        """Does the connection carry one answer at a time (HTTP/1.1)?"""
        self._bytes = 0
        self._lines = 0

    def take(self, line: bytes) -> bool:
        """Take one line, with its line end. False: the answer cannot be used, and `problem` says why."""
        if self.complete:
            return True
        self._bytes += len(line)
        self._lines += 1
        if self._bytes > _MAX_BYTES or self._lines > _MAX_LINES:
            return self._refuse("answers with a head that is too large")
        if line in (b"\r\n", b"\n"):
            return self._end()
        if line.startswith(b"HTTP/") and (found := _STATUS.fullmatch(line)):
            self.status = int(found[1])
            self.alone = line.startswith(b"HTTP/1")
            self.headers.clear()
            return True
        return self._field(line)

    def _field(self, line: bytes) -> bool:
        found = _FIELD.fullmatch(line)
        if found is None or not self.status:
            return self._refuse("answers with something that is not HTTP")
        name = found[1].decode().lower()
        value = found[2].decode("latin-1")
        before = self.headers.get(name)
        if before is not None:
            # Two lengths are a sign of response smuggling.
            if name == "content-length" and before != value:
                return self._refuse("answers with two lengths for one body")
            if name in _LISTS:
                value = f"{before}, {value}"
        self.headers[name] = value
        return True

    def _end(self) -> bool:
        if self.status == 101:
            return self._refuse("switches to another protocol")
        if self.status < 200:  # an interim answer, the final one follows
            self.status = 0
        else:
            self.complete = True
        return True

    def _refuse(self, why: str) -> bool:
        self.problem = why
        return False
