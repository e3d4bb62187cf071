"""Upstreams that the user names, with `--upstream` or on the terminal: `NAME`, or `NAME=PART,…`."""

from __future__ import annotations

import re

from ...config import ConfigError, loads
from ...config.platforms import PLACE
from ...config.providers import providers
from ...model.errors import DragomanError
from ...protocols.registry import DEFAULT_PROTOCOL, upstreams
from .candidates import UpstreamCandidate
from .config_text import upstream_block

_CREDENTIAL = re.compile(r"env:\w+|file:.+|aws|google|entra|client|none")
_PLACE = re.compile(rf"({'|'.join(PLACE)})=(.+)")
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_WHERE = re.compile(r"dragoman\.toml:\d+: ")


def parse(text: str) -> UpstreamCandidate:
    """`groq`, `work=https://llm.example.net/v1`, `work=anthropic,https://llm.example.net,env:WORK_KEY`."""
    name, _, rest = (part.strip() for part in text.partition("="))
    if not _NAME.fullmatch(name):
        raise DragomanError(
            f'--upstream "{text}" has no valid name (letters, digits, - and _): write NAME, or NAME=ADDRESS'
        )
    if not rest and name not in providers():
        known = ", ".join(providers())
        raise DragomanError(
            f"{name} is not a known provider; give its address (--upstream {name}=https://…), "
            f"or use one of {known}"
        )
    return checked(name, _table(name, [part.strip() for part in rest.split(",")] if rest else []))


def checked(name: str, table: dict[str, str]) -> UpstreamCandidate:
    """A candidate with this table, or an error if the config reader refuses it."""
    # A known provider, and a table without an address, have a protocol already.
    if name not in providers() and "protocol" not in table and "base_url" in table:
        table = {"protocol": DEFAULT_PROTOCOL.name, **table}
    candidate = UpstreamCandidate(name=name, table=table, why=_why(name, table))
    try:
        loads("\n".join(upstream_block(candidate)), env={})
    except ConfigError as error:
        raise DragomanError(f"--upstream {name}: {_WHERE.sub('', error.message)}") from None
    return candidate


def _table(name: str, parts: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in parts:
        if place := _PLACE.fullmatch(part):
            found[place[1]] = place[2]
        else:
            found[_key_of(name, part)] = part
    return {key: found[key] for key in ("protocol", *PLACE, "base_url", "credential") if key in found}


def _key_of(name: str, part: str) -> str:
    if part in upstreams():
        return "protocol"
    if part.startswith(("http://", "https://")):
        return "base_url"
    if _CREDENTIAL.fullmatch(part):
        return "credential"
    # Do not repeat the part in the message: the user may have pasted a key.
    raise DragomanError(
        f"--upstream {name}: each part must be an address (https://…), a protocol "
        f"({', '.join(upstreams())}), where the key is (env:NAME, file:PATH, aws, google, entra, client, "
        "none; never the key itself) or a place (region=…)"
    )


def _why(name: str, table: dict[str, str]) -> str:
    if "base_url" in table:
        return table["base_url"].partition("?")[0]  # the query may hold a key
    return providers()[name].upstream.get("base_url", name)
