"""The text of the new config: short, with comments, and with the next settings to change commented out."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...protocols.registry import PROTOCOLS
from .candidates import UpstreamCandidate

_LINE = 110

_HEAD = """\
# Dragoman's config, written by `dragoman init`. A running gateway reloads it when you save it.
# `dragoman check` checks it. All settings: docs/reference/configuration.md

[server]
port = {port}
# host = "0.0.0.0"               # to serve other machines; their clients must send one of these keys:
# keys = ["env:DRAGOMAN_KEY"]

# Upstreams are the model endpoints. A credential names where a key is: env:NAME, file:PATH, command:PROGRAM …
"""

_ROUTES = """\
# Routes map the client's model name to an upstream; the first match wins. A `*` in `to` keeps the
# client's model name. "{name}/MODEL" needs no route: clients can always ask for that.
"""

_TIERS = {"small": "haiku, mini, flash", "middle": "sonnet", "big": "opus"}
_TAIL = [
    '# Agents such as Claude Code ask for models of three sizes. Tiers come before the route for "*".',
    "# [tiers]",
]
_TOOLS = """
# [tools]
# invalid = "reask"              # if a call stays invalid, ask the model again (pass, reask, error)
"""


_EXAMPLES = """\
# Uncomment one of these, or write your own. `dragoman init --upstream NAME` writes any known provider.

# [upstreams.openrouter]           # a known provider needs only its key
# credential = "env:OPENROUTER_API_KEY"

# [upstreams.ollama]               # a model server on this machine

# [upstreams.work]                 # any other server: its protocol, its address, and where its key is
# protocol = "PROTOCOL"            # {protocols}
# base_url = "https://llm.example.net/v1"
# credential = "env:WORK_KEY"

# Routes map the client's model name to an upstream; the first match wins. A `*` in `to` keeps the
# client's model name.
# [[routes]]
# match = "*"
# to = "openrouter/*"
"""


def config_text(upstreams: Sequence[UpstreamCandidate], *, port: int, model: str | None = None) -> str:
    """The text of `dragoman.toml`. `model` (`upstream/model`) is the target of the `*` route."""
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


def template_text(*, port: int) -> str:
    """The text of `dragoman.toml` if no upstream was found: examples to uncomment."""
    return _HEAD.format(port=port) + _EXAMPLES.format(protocols=", ".join(PROTOCOLS)) + _TOOLS


def everything_else(upstreams: Sequence[UpstreamCandidate]) -> str:
    """The default target of the `*` route: a listed model, else any model of the first upstream."""
    listed = next((each for each in upstreams if each.chat_model), None)
    return f"{listed.name}/{listed.chat_model}" if listed else f"{upstreams[0].name}/*"


def upstream_block(upstream: UpstreamCandidate) -> list[str]:
    """The table `[upstreams.NAME]`."""
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
    """A string or a list of strings as TOML. JSON is the same, except that TOML forbids a raw DEL."""
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")
