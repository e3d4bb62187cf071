"""The platforms of `platforms.toml`: how a cloud hosts a protocol at its own paths."""

from __future__ import annotations

import functools
import re
import string
import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from ..model.errors import BadRequest

Obj = dict[str, Any]
PLACE = ("region", "project", "location", "api_version")
"""The keys of `[upstreams.NAME]` that say where in a cloud the models are."""
_VERSION = re.compile(r"^/v\d+[a-z0-9]*(?=/)")
_TRUE = msgspec.Raw(b"true")


class Hosting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one platform hosts one protocol. The comment at the top of `platforms.toml` explains each field."""

    path: str
    verbs: tuple[str, str] = ("", "")
    without: frozenset[str] = frozenset()
    body: dict[str, str] = {}
    betas: str = ""
    without_betas: tuple[str, ...] = ()
    headers: dict[str, str] = {}
    without_headers: frozenset[str] = frozenset()
    complete: str = ""
    others: str = ""
    others_unnamed: str = ""
    count: str = ""
    count_members: frozenset[str] | None = None

    def needs(self) -> list[str]:
        """The keys of the upstream that its paths contain."""
        return places_in(self.path + self.count)

    def answer_request(
        self, path: str, members: Mapping[str, Any], betas: str, values: Mapping[str, str]
    ) -> tuple[str, Obj]:
        """The path and body of a request for an answer, from those of the protocol itself.

        `betas` are the beta features, separated by commas. `values` are the values of the fields.
        """
        stream = members.get("stream")
        verb = self.verbs[stream is True or stream == _TRUE]
        body = {key: value for key, value in members.items() if key not in self.without}
        body |= self._added(values)
        if self.betas and (features := self._features(betas)):
            body.setdefault(self.betas, features)
        return self._filled(self.path, values, tail=_VERSION.sub("", path), verb=verb), body

    def other_path(self, tail: str, values: Mapping[str, str]) -> str:
        """The path of another endpoint. `tail` is the protocol's own path without its version."""
        return self._filled(self.others if values["model"] else self.others_unnamed, values, tail=tail)

    def count_request(self, members: Mapping[str, Any], values: Mapping[str, str]) -> tuple[str, Obj]:
        """The path and body of a request to count the tokens of a request for an answer."""
        only = self.count_members
        body = {key: value for key, value in members.items() if only is None or key in only}
        return self._filled(self.count, values), body | self._added(values)

    def _features(self, betas: str) -> list[str]:
        return [
            name
            for name in betas.split(",")
            if name and not any(fnmatchcase(name, glob) for glob in self.without_betas)
        ]

    def _added(self, values: Mapping[str, str]) -> Obj:
        return {key: value.format(**values) for key, value in self.body.items()}

    def _filled(self, path: str, values: Mapping[str, str], **raw: str) -> str:
        model = values["model"]
        # The client chooses the name, and the request carries the upstream's key: no name may lead elsewhere.
        if "{model}" in path and model in ("", ".", ".."):
            raise BadRequest(f"{model!r} cannot stand in a path", "model")
        # An unescaped colon is what AWS signs (9router#4036). The slash of an ARN is part of the name.
        return path.format(**{key: quote(value, safe=":@") for key, value in values.items()}, **raw)


def places_in(template: str) -> list[str]:
    """The keys of the upstream that a URL or a path contains."""
    named = {field for _, field, _, _ in string.Formatter().parse(template)}
    return [key for key in PLACE if key in named]


def places(platform: str) -> frozenset[str]:
    """The keys of the upstream that the paths of a platform contain, whatever the protocol."""
    return frozenset(key for found in _document()[platform].values() for key in found.needs())


@functools.cache
def _document() -> dict[str, dict[str, Hosting]]:
    text = Path(__file__).with_name("platforms.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, dict[str, Hosting]])


def hosting(platform: str, protocol: str, base_url: str) -> Hosting | None:
    """How `platform` hosts `protocol`. None: at the protocol's own paths below `base_url`."""
    found = _document()[platform].get(protocol) if platform else None
    return None if found is None or (found.complete and found.complete in base_url) else found
