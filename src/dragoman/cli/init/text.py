"""The config as text: short, with the reasons beside it, and the next things to change ready as comments."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from .found import Candidate

_LINE = 110

_HEAD = """\
# Dragoman's config, begun by `dragoman init`. A running gateway takes changes as they are saved;
# `dragoman check` says whether all of it works. Every key: docs/reference/configuration.md

[server]
port = {port}
# host = "0.0.0.0"               # for other machines; they have to send one of these keys:
# keys = ["env:DRAGOMAN_KEY"]

# Upstreams are who answers. Keys stay where they are: env:NAME, file:PATH, command:PROGRAM …
"""

_ROUTES = """\
# Routes say who answers, by the model a client asks for; the first that fits wins. A `*` in `to` keeps
# the client's model name. "{name}/MODEL" needs no route: clients may always ask for that.
"""

_TIERS = {"small": "haiku, mini, flash", "middle": "sonnet", "big": "opus"}
_TAIL = [
    '# The sizes of model that agents such as Claude Code ask for; these come before a route for "*".',
    "# [tiers]",
]
_TOOLS = """
# [tools]
# invalid = "reask"              # a call that cannot be mended: ask the model again (pass, reask, error)
"""


def config_text(upstreams: Sequence[Candidate], *, port: int, model: str | None = None) -> str:
    """A whole `dragoman.toml`. `model` is where everything goes that has no maker here: `upstream/model`."""
    lines = [_HEAD.format(port=port)]
    for upstream in upstreams:
        lines += [*upstream_block(upstream), ""]
    lines += [_ROUTES.format(name=upstreams[0].name)]
    for upstream in upstreams:
        if upstream.families:
            lines += _route(list(upstream.families), f"{upstream.name}/*")
    lines += _route("*", model or everything_else(upstreams))
    target = f"{upstreams[0].name}/MODEL"
    sizes = [_beside(f"# {size} = {_value(target)}", names) for size, names in _TIERS.items()]
    return "\n".join([*lines, *_TAIL, *sizes, _TOOLS])


def everything_else(upstreams: Sequence[Candidate]) -> str:
    """A model that is known to be there, else whatever the client asks for, at the first upstream."""
    listed = next((each for each in upstreams if each.talking_model), None)
    return f"{listed.name}/{listed.talking_model}" if listed else f"{upstreams[0].name}/*"


def upstream_block(upstream: Candidate) -> list[str]:
    """`[upstreams.NAME]` and what belongs to it."""
    lines = [_beside(f"[upstreams.{upstream.name}]", upstream.why)]
    lines += [f"{key} = {_value(value)}" for key, value in upstream.table.items()]
    if "credential" not in upstream.table and upstream.variable:
        lines.append(f'credential = "env:{upstream.variable}"')
    return lines + (_list("models", upstream.models) if upstream.models else [])


def _beside(line: str, comment: str) -> str:
    return f"{line:<32} # {comment}"


def _route(match: str | list[str], to: str) -> list[str]:
    wanted = match[0] if isinstance(match, list) and len(match) == 1 else match
    return ["[[routes]]", f"match = {_value(wanted)}", f"to = {_value(to)}", ""]


def _list(key: str, values: Sequence[str]) -> list[str]:
    line = f"{key} = {_value(list(values))}"
    if len(line) <= _LINE:
        return [line]
    return [f"{key} = [", *(f"  {_value(value)}," for value in values), "]"]


def _value(value: str | list[str]) -> str:
    """Texts and lists of texts are written alike in JSON and TOML, but for one character."""
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")
