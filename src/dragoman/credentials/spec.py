"""Parse `credential` in the config.

    credential = "env:NAME" | "file:PATH" | "command:PROGRAM ARGUMENTS" | "client" | "none"
    credential = { sqlite = PATH, key = KEY, field = FIELD }
    credential = "antigravity"
    credential = "aws" | "google" | "entra", or a table such as { aws = PROFILE }

Errors never repeat a value: a user may have written the key itself there.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any, Literal, cast

import msgspec

from ..transport.urls import parse as parse_url
from .known import PROGRAMS, known_tables
from .protobuf import parse_path
from .secret import Secret

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Kind = Literal["env", "file", "command", "sqlite", "oauth", "aws", "google", "entra", "client", "none"]


class CredentialSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Where a credential comes from. Each kind uses some of the fields."""

    kind: Kind
    name: str = ""
    """env: the variable."""
    path: str = ""
    """file, sqlite, oauth, google. `~` is the home folder."""
    command: tuple[str, ...] = ()
    key: str = ""
    """sqlite: the row."""
    field: str = ""
    """The member of a JSON value; `a.b` is `b` inside `a`. oauth: the object with the tokens."""
    protobuf: str = ""
    """sqlite: the path of the token in a protobuf value (`protobuf.py`)."""
    expires: str = ""
    """sqlite: the path of the expiry time, from the message that holds the token."""
    otherwise: tuple[CredentialSpec, ...] = ()
    """sqlite: further places to try, in order."""
    ttl: float | None = None
    """command: seconds for which its output is valid."""
    timeout: float = 30.0
    """command: maximum run time in seconds."""
    environment: tuple[str, ...] = ()
    """command: environment variables that it gets besides the common ones."""
    token_url: str = ""
    """oauth: the token endpoint. Without it, only the program that owns the file refreshes tokens."""
    client_id: str = ""
    client_secret: Secret | None = None
    client_secret_env: str = ""
    body: Literal["form", "json"] = "form"
    """oauth: the format of the refresh request."""
    write_back: bool = False
    """oauth: write refreshed tokens into the file, for the program that owns it."""

    profile: str = ""
    """aws: the profile. Empty: botocore's whole chain."""
    region: str = ""
    """aws: the region in the signature. The upstream's `region`, if it is empty."""
    service: str = ""
    """aws: the service in the signature; empty: `bedrock`."""
    scope: str = ""
    """entra: what the token is for. Empty: Azure's models."""

    @property
    def description(self) -> str:
        """A short name for logs and errors, without the arguments of a command: they may be secret."""
        program = self.command[0] if self.command else ""
        detail = self.name or self.path or self.profile or program
        return f"{self.kind}:{detail}" if detail else self.kind

    def __repr__(self) -> str:
        return f"CredentialSpec({self.description})"


def parse(value: str | Mapping[str, Any]) -> CredentialSpec:
    """Parse the value in the config. Raises ValueError with a sentence for the user."""
    return _parse_text(value) if isinstance(value, str) else _parse_table(value)


FORMS = (
    f"env:NAME, file:PATH, command:PROGRAM, {', '.join(PROGRAMS)}, aws, google, entra, client, none "
    "or a table such as { sqlite = …, key = … }"
)


def _parse_text(text: str) -> CredentialSpec:
    kind, colon, rest = text.partition(":")
    rest = rest.strip()
    match kind.strip():
        case "client" | "none" | "aws" | "google" | "entra" as alone if not colon:
            return CredentialSpec(kind=alone)
        case known if not colon and (tables := known_tables(known)):
            return _first_that_works([_parse_table(table) for table in tables])
        case "env" | "file" | "command" as place if colon:
            return _parse_table({place: rest})
        case "sqlite" if colon:
            raise ValueError(
                'a sqlite credential is a table: { sqlite = "PATH", key = "KEY", field = "FIELD" }'
            )
        case "oauth" if colon:
            raise ValueError('an oauth credential is a table: { oauth = "PATH", token_url = "https://…" }')
        case _:
            raise ValueError(
                f"a credential is {FORMS}; do not write the key itself into the config: "
                "put it into an environment variable or a file"
            )


def _parse_table(table: Mapping[str, Any]) -> CredentialSpec:
    # `env` is a kind of credential, and also an option of the kind `command`.
    kinds = [kind for kind in _OPTIONS if kind in table and not (kind == "env" and "command" in table)]
    if len(kinds) != 1:
        raise ValueError(f"a credential has exactly one source: {FORMS}")
    kind = kinds[0]
    options = _OPTIONS[kind]
    if kind == "sqlite" and isinstance(table[kind], list):
        return _several_files(table, cast("list[object]", table[kind]))
    values: dict[str, Any] = {"kind": kind}
    for option, value in table.items():
        if option not in options:
            raise ValueError(_unknown(kind, option, options))
        values |= options[option](option, value)
    spec = CredentialSpec(**values)
    if kind == "sqlite" and not spec.key:
        raise ValueError("a sqlite credential needs `key`, the row that holds the secret")
    if spec.protobuf and spec.field:
        raise ValueError(
            "`field` is for JSON and `protobuf` for protobuf: a sqlite credential has one of them"
        )
    if spec.expires and not spec.protobuf:
        raise ValueError(
            "`expires` of a sqlite credential needs `protobuf`: in JSON, the expiry is found by its name"
        )
    if spec.write_back and not spec.token_url:
        raise ValueError("`write_back` needs `token_url`: without it, there is no refreshed token to write")
    return spec


def _several_files(table: Mapping[str, Any], paths: list[object]) -> CredentialSpec:
    """The same row of several files."""
    if not paths:
        raise ValueError("`sqlite` of a credential must name a file, or a list of files")
    return _first_that_works([_parse_table({**table, "sqlite": path}) for path in paths])


def _first_that_works(specs: list[CredentialSpec]) -> CredentialSpec:
    return msgspec.structs.replace(specs[0], otherwise=tuple(specs[1:]))


def _unknown(kind: str, option: str, options: Mapping[str, object]) -> str:
    near = difflib.get_close_matches(option, options, 1)
    hint = f"did you mean `{near[0]}`?" if near else f"it takes {', '.join(f'`{name}`' for name in options)}"
    return f"`{option}` is not an option of {_with_article(kind)} credential; {hint}"


def _with_article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeo" else f"a {kind}"


_Option = Callable[[str, object], dict[str, Any]]


def _text(into: str) -> _Option:
    def read(option: str, value: object) -> dict[str, Any]:
        if not isinstance(value, str) or not value.strip():
            raise ValueError(f"`{option}` of a credential must be a non-empty text")
        return {into: value.strip()}

    return read


def _protobuf(option: str, value: object) -> dict[str, Any]:
    text = _text(option)(option, value)[option]
    parse_path(text)
    return {option: text}


def _variable(option: str, value: object) -> dict[str, Any]:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError("`env` takes the name of an environment variable: letters, digits and underscores")
    return {"name": value}


def _variables(option: str, value: object) -> dict[str, Any]:
    names = cast("list[object]", value) if isinstance(value, list) else [None]
    if not all(isinstance(name, str) and _NAME.fullmatch(name) for name in names):
        raise ValueError(
            "`env` of a command credential is a list of names of environment variables, "
            'such as ["AWS_PROFILE"]: names, not values'
        )
    return {"environment": tuple(cast("list[str]", names))}


def _command(option: str, value: object) -> dict[str, Any]:
    words = _split(value) if isinstance(value, str) else value
    if not isinstance(words, (list, tuple)) or not words:
        raise ValueError("`command` of a credential must be a command line or a list of words")
    words = cast("list[object] | tuple[object, ...]", words)
    if not all(isinstance(word, str) for word in words) or not words[0]:
        raise ValueError("`command` of a credential must be a list of words, the program first")
    return {"command": tuple(cast("list[str]", words))}


def split_words(line: str, *, windows: bool = os.name == "nt") -> list[str]:
    """The words of a command line as a shell splits them. Raises ValueError for an open quote."""
    words = shlex.shlex(line, posix=True)
    words.whitespace_split = True
    words.commenters = ""
    if windows:
        words.escape = ""  # a path has backslashes
    return list(words)


def _split(line: str) -> list[str]:
    try:
        return split_words(line)
    except ValueError:
        pass
    raise ValueError("`command` of a credential has an unclosed quote")


def _seconds(option: str, value: object) -> dict[str, Any]:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
        raise ValueError(f"`{option}` of a credential must be a number of seconds above zero")
    return {option: float(value)}


def _flag(option: str, value: object) -> dict[str, Any]:
    if not isinstance(value, bool):
        raise ValueError(f"`{option}` of a credential must be true or false")
    return {option: value}


def _body(option: str, value: object) -> dict[str, Any]:
    if value not in ("form", "json"):
        raise ValueError('`body` of an oauth credential must be "form" or "json"')
    return {option: value}


def _client_secret(option: str, value: object) -> dict[str, Any]:
    text = _text(option)(option, value)[option]
    if text.startswith("env:"):
        return {"client_secret_env": _variable("env", text.removeprefix("env:").strip())["name"]}
    return {"client_secret": Secret(text)}


def _token_url(option: str, value: object) -> dict[str, Any]:
    problem = check_token_url(value) if isinstance(value, str) else "`token_url` must be a text"
    if problem:
        raise ValueError(problem)
    return {option: value}


def check_token_url(text: str) -> str | None:
    """An error unless the URL uses TLS or this machine: a refresh token is as sensitive as a password."""
    try:
        url = parse_url(text)
    except ValueError:
        url = None
    if url is not None and (url.scheme == "https" or url.host in ("127.0.0.1", "::1", "localhost")):
        return None
    return "`token_url` of an oauth credential must be an https:// address"


_OPTIONS: Mapping[str, Mapping[str, _Option]] = {
    "env": {"env": _variable},
    "file": {"file": _text("path"), "field": _text("field")},
    "command": {
        "command": _command,
        "field": _text("field"),
        "ttl": _seconds,
        "timeout": _seconds,
        "env": _variables,
    },
    "sqlite": {
        "sqlite": _text("path"),
        "key": _text("key"),
        "field": _text("field"),
        "protobuf": _protobuf,
        "expires": _protobuf,
    },
    "oauth": {
        "oauth": _text("path"),
        "field": _text("field"),
        "token_url": _token_url,
        "client_id": _text("client_id"),
        "client_secret": _client_secret,
        "body": _body,
        "write_back": _flag,
    },
    "aws": {"aws": _text("profile"), "region": _text("region"), "service": _text("service")},
    "google": {"google": _text("path")},
    "entra": {"entra": _text("scope")},
}
