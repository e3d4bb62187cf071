"""Every key of `dragoman.toml`: how it is read, and what it means. The manual's table is made from this."""

from __future__ import annotations

import ipaddress
from typing import Any, cast, get_args

import msgspec

from ..credentials.binding import key_headers
from ..credentials.secret import Secret
from ..credentials.spec import CredentialSpec, parse
from ..profiles import Arguments
from ..protocols.base import Freeform
from ..protocols.registry import PROTOCOLS
from ..tools.rules import ANSWER_RULES, RULES
from . import network
from .types import KeyRef, LoopsConfig, ModelConfig, TargetConfig, TlsConfig
from .values import (
    Context,
    Read,
    Wrong,
    choice,
    duration,
    flag,
    glob,
    headers,
    kind,
    names,
    nearest,
    number,
    params,
    path,
    regex,
    several,
    size,
    size_or_none,
    some_time,
    table,
    text,
    whole,
)


class Key(msgspec.Struct, frozen=True):
    """One key: its reader, and its line in the manual."""

    read: Read
    type: str
    default: str
    """As one would write it; empty where the key must be given, `-` where it is simply absent."""
    doc: str


Keys = dict[str, Key]


def read_table(value: Any, keys: Keys, context: Context) -> dict[str, Any]:
    """A small table inside a value; what is wrong with one of its keys is wrong with the value."""
    found: dict[str, Any] = {}
    for name, item in table(value).items():
        if name not in keys:
            raise Wrong(f'has the unknown key "{name}"{nearest(name, keys)}', name)
        try:
            found[name] = keys[name].read(item, context)
        except Wrong as wrong:
            raise Wrong(f"{name} {wrong.message}", name, *wrong.below) from None
    return found


def _target_text(value: Any, context: Context) -> TargetConfig:
    content = text(value, context)
    upstream, slash, model = content.partition("/")
    if not slash or not model or not upstream:
        hint = f'; "{upstream}/*" keeps the client\'s model name' if upstream in context.upstreams else ""
        raise Wrong(f'must be "upstream/model", not "{content}"{hint}')
    if upstream not in context.upstreams:
        hint = nearest(upstream, context.upstreams)
        if upstream in context.providers:
            hint = f"; add [upstreams.{upstream}] to use it"
        raise Wrong(f'names the upstream "{upstream}", which is not configured{hint}')
    if model.count("*") > 1:
        raise Wrong(f'has more than one "*" in "{content}"')
    return TargetConfig(upstream=upstream, model=model)


TARGET: Keys = {
    "target": Key(_target_text, "text", "", "`upstream/model`; a `*` stands for the client's model name."),
    "weight": Key(
        number,
        "number",
        "-",
        "Neighbours with weights share the conversations in proportion; the others follow.",
    ),
    "params": Key(
        params, "table", "{}", "Fields set in the upstream's request, by the names of its own protocol."
    ),
}


def _target(value: Any, context: Context) -> TargetConfig:
    if not isinstance(value, dict):
        return _target_text(value, context)
    found = read_table(cast(Any, value), TARGET, context)
    if "target" not in found:
        raise Wrong('is a table without "target"')
    return msgspec.structs.replace(found.pop("target"), **found)


MODEL: Keys = {
    "name": Key(text, "text", "", "The model's name at the upstream."),
    "context": Key(whole(1), "whole number", "-", "Its context window, in tokens."),
    "max_output": Key(
        whole(1), "whole number", "-", "Its longest answer, in tokens: requests are held to it."
    ),
    "reasons": Key(flag, "true or false", "its name's", "It takes settings for reasoning."),
    "images": Key(flag, "true or false", "its name's", "It takes images."),
    "audio": Key(flag, "true or false", "its name's", "It takes sound."),
    "search": Key(flag, "true or false", "its name's", "It takes Chat's `web_search_options`."),
    "media_results": Key(
        flag, "true or false", "its name's", "Results of its tools may hold images and documents."
    ),
}


def _model(value: Any, context: Context) -> ModelConfig:
    if not isinstance(value, dict):
        return ModelConfig(name=text(value, context))
    found = read_table(cast(Any, value), MODEL, context)
    if "name" not in found:
        raise Wrong('is a table without "name"')
    return ModelConfig(**found)


LOOPS: Keys = {
    "note_after": Key(
        whole(0), "whole number", "0", "Add one note for the model after so many equal calls; 0: never."
    ),
    "stop_after": Key(
        whole(0), "whole number", "0", "Stop with a clear message after so many equal calls; 0: never."
    ),
}


def _loops(value: Any, context: Context) -> LoopsConfig:
    return LoopsConfig(**read_table(value, LOOPS, context))


def _provider(value: Any, context: Context) -> str:
    name = text(value, context)
    if name not in context.providers:
        raise Wrong(f'names the provider "{name}", which is not known{nearest(name, context.providers)}')
    return name


def _key(value: Any, context: Context) -> KeyRef:
    """A key clients must send, as `env:NAME` or itself. Nothing of it is ever said: it may be the key."""
    content = text(value, context)
    if not content.startswith("env:"):
        return KeyRef(literal=Secret(content))
    name = content.removeprefix("env:").strip()
    if not name:
        raise Wrong('must name a variable after "env:"')
    return KeyRef(env=name)


def _credential(value: Any, context: Context) -> CredentialSpec:
    if not isinstance(value, (str, dict)):
        raise Wrong(f"must be text or a table, not {kind(value)}")
    try:
        spec = parse(cast(Any, value))
    except ValueError as error:
        raise Wrong(f"cannot be used: {error}") from None
    if spec.path and not spec.path.startswith("~"):
        return msgspec.structs.replace(spec, path=str(context.folder / spec.path))
    return spec


targets = several(_target, one_will_do=True)
globs = several(glob, one_will_do=True)


def _network(value: Any, context: Context) -> str:
    content = text(value, context)
    try:
        return str(ipaddress.ip_network(content, strict=False))
    except ValueError:
        raise Wrong(f'must be an IP address or a network such as "10.0.0.0/8", not "{content}"') from None


TLS: Keys = {
    "cert": Key(path, "path", "", "The certificate, with the chain up to its authority, in PEM."),
    "key": Key(path, "path", "", "Its private key, in PEM, without a password."),
}


def _tls(value: Any, context: Context) -> TlsConfig:
    found = read_table(value, TLS, context)
    for name in TLS:
        if name not in found:
            raise Wrong(f'needs "{name}"')
    return TlsConfig(**found)


SERVER: Keys = {
    "host": Key(
        text, "text", '"127.0.0.1"', "The address to listen on. Any that is not loopback needs `keys`."
    ),
    "port": Key(whole(0, 65_535), "whole number", "4545", "The port to listen on; 0 takes a free one."),
    "unix": Key(
        path,
        "path",
        "-",
        "A Unix socket to listen on instead of `host` and `port`; only its owner may use it.",
    ),
    "tls": Key(_tls, "table", "-", "`{ cert = PATH, key = PATH }`: answer over TLS with this certificate."),
    "trusted_proxies": Key(
        several(_network),
        "list of texts",
        "[]",
        "Addresses or networks of reverse proxies whose X-Forwarded-For and X-Forwarded-Host are believed.",
    ),
    "keys": Key(
        several(_key), "list of texts", "[]", "Keys clients must send: `env:NAME`, or the key itself."
    ),
    "allowed_hosts": Key(
        several(text),
        "list of texts",
        "[]",
        "Names clients may use in the Host header, besides loopback and `host`.",
    ),
    "workers": Key(whole(1, 256), "whole number", "1", "Processes that share the port."),
    "max_body": Key(size, "size", '"64MB"', "The largest request body."),
    "max_streams": Key(whole(1), "whole number", "1000", "Exchanges at the same time, per worker."),
    "max_connections": Key(
        whole(1), "whole number", "4096", "Connections of clients at the same time, per worker."
    ),
    "client_timeout": Key(
        some_time,
        "time",
        '"30s"',
        "How long a client may take for a request's head, pause in a body, or not read its answer.",
    ),
    "keepalive": Key(
        duration,
        "time",
        '"15s"',
        "Silence, before the answer too, after which a client that survives it gets a keepalive; 0: never.",
    ),
    "shutdown_grace": Key(duration, "time", '"30s"', "How long running answers may go on after a stop."),
    "retries": Key(
        whole(0, 10),
        "whole number",
        "2",
        "Further attempts at one target before the next, on passing trouble.",
    ),
    "store": Key(
        path, "path", "-", "The SQLite file for what must last; by default in the user's data folder."
    ),
    "retention": Key(duration, "time", '"30d"', "How long receipts and stored answers are kept."),
    "ring": Key(
        size_or_none,
        "size",
        '"32MB"',
        "How much of the last exchanges' bytes is kept in memory to look at, per worker; 0: nothing.",
    ),
    "record": Key(path, "path", "-", "A folder to record every exchange in, one file each; none by default."),
    "redact": Key(
        several(regex),
        "list of texts",
        "[]",
        "Regular expressions: what fits one is not shown, kept or recorded. Secrets never are.",
    ),
    "strict": Key(flag, "true or false", "false", "Refuse what would otherwise be dropped with a warning."),
    "direct": Key(
        flag, "true or false", "true", "May clients name an upstream themselves, as `upstream/model`?"
    ),
}


def _protocol(value: Any, context: Context) -> str:
    return choice(*PROTOCOLS)(value, context)


def _auths() -> tuple[str, ...]:
    return ("bearer", *key_headers())


def _auth(value: Any, context: Context) -> str:
    return choice(*_auths())(value, context)


def _listed(words: tuple[str, ...]) -> str:
    *first, last = (f"`{word}`" for word in words)
    return f"{', '.join(first)} or {last}"


UPSTREAM: Keys = {
    "provider": Key(
        _provider, "text", "its own name", "A known provider to take everything from that is not given here."
    ),
    "protocol": Key(
        _protocol,
        "text",
        "",
        f"{_listed(tuple(PROTOCOLS))}.",
    ),
    "base_url": Key(
        text, "text", "", "What the provider's own SDK takes; a missing or extra `/v1` is understood."
    ),
    "credential": Key(
        _credential,
        "text or table",
        '"none"',
        "`env:NAME`, `file:PATH`, `command:…`, `client`, `none` or a table (below).",
    ),
    "auth": Key(
        _auth,
        "text",
        "its protocol's",
        f"The header its key goes into: {_listed(_auths())}.",
    ),
    "headers": Key(headers, "table", "{}", "Headers to send along."),
    "models": Key(
        several(_model), "list", "[]", "Models to show in `/v1/models`: names, or tables with limits (below)."
    ),
    "connect_timeout": Key(some_time, "time", '"10s"', "How long a connection may take."),
    "idle_timeout": Key(
        some_time, "time", '"5m"', "How long an answer may stay silent before it is given up."
    ),
    "proxy": Key(
        network.proxy,
        "text",
        "-",
        "The proxy: `http://…`, `https://…`, `socks5://…`, `socks5h://…` or `none`; else the environment's.",
    ),
    "ca": Key(network.ca, "path", "-", "A PEM file with certificates to trust, besides those of the system."),
    "client_cert": Key(
        network.client_cert,
        "path or table",
        "-",
        "A PEM file with a certificate and its key to show, or `{ cert = PATH, key = PATH }`.",
    ),
    "strict": Key(flag, "true or false", "`server.strict`", "The same, for this upstream."),
    "chat_compatible": Key(
        flag,
        "true or false",
        "true",
        "A Chat server that is not OpenAI's own: no `developer` role, no freeform tools.",
    ),
    "max_tokens_field": Key(
        choice("max_tokens", "max_completion_tokens"),
        "text",
        '"max_tokens"',
        "The Chat field for the bound on output. OpenAI's own want `max_completion_tokens`.",
    ),
    "reasoning_field": Key(
        text, "text", "-", "The Chat field in which it wants its reasoning back (`reasoning_content`, …)."
    ),
    "ids": Key(
        choice("mistral", "any"),
        "text",
        "-",
        "Where it is pickier about call ids than its protocol: `mistral`.",
    ),
    "anthropic_version": Key(text, "text", '"2023-06-01"', "The `anthropic-version` header."),
    "default_max_tokens": Key(
        whole(1), "whole number", "32000", "Anthropic needs `max_tokens`: this, where the client said none."
    ),
}

ROUTE: Keys = {
    "match": Key(
        globs, "glob or list", "", "The client's model name: `*` any text, `?` one character, `[ab]` one of."
    ),
    "to": Key(
        targets, "target or list", "", "Where to go: `upstream/model` or tables (below), in order of trial."
    ),
}

TIERS: Keys = {
    "small": Key(targets, "target or list", "-", "For names with haiku, mini or flash."),
    "middle": Key(targets, "target or list", "-", "For names with sonnet."),
    "big": Key(targets, "target or list", "-", "For names with opus."),
}

TOOLS: Keys = {
    "invalid": Key(
        choice("pass", "reask", "error"),
        "text",
        '"pass"',
        "A call that no rule makes fit: hand it over, ask the model again, or end with an error.",
    ),
    "reask_attempts": Key(whole(1, 10), "whole number", "2", "How often `reask` may ask."),
    "off": Key(
        names([*ANSWER_RULES, *(r.name for r in RULES)], "rule"),
        "list of texts",
        "[]",
        "Mending rules switched off.",
    ),
    "loops": Key(_loops, "table", "{}", "What to do about equal calls with equal results (below)."),
}

CLIENT: Keys = {
    "arguments": Key(
        choice(*get_args(Arguments)), "text", "its profile's", "`whole`: in one piece; `live`: as they come."
    ),
    "freeform": Key(
        choice(*get_args(Freeform)),
        "text",
        "`function` for Cursor, else `custom`",
        "Calls of freeform tools in Chat: `custom`, or `function` with the raw text as arguments.",
    ),
    "keepalive": Key(duration, "time", "`server.keepalive`", "The same, for this client."),
}

TELEMETRY: Keys = {
    "traces": Key(
        flag,
        "true or false",
        "-",
        "Send OpenTelemetry traces (`dragoman[otel]`)? If not said: where there is an endpoint.",
    ),
    "endpoint": Key(
        text, "text", "`OTEL_EXPORTER_OTLP_ENDPOINT`", "The collector, as OTLP over HTTP: `http://…:4318`."
    ),
}

ALIAS = Key(targets, "target or list", "-", "Another name for a target; shown in `/v1/models`.")

SECTIONS: dict[str, Keys] = {
    "[server]": SERVER,
    "[upstreams.NAME]": UPSTREAM,
    "[[routes]]": ROUTE,
    "[aliases]": {"NAME": ALIAS},
    "[tiers]": TIERS,
    "[tools]": TOOLS,
    "[clients.NAME]": CLIENT,
    "[telemetry]": TELEMETRY,
}
"""The tables of a config file, as one writes their heads."""

SMALL_TABLES: dict[str, Keys] = {"a target": TARGET, "a model": MODEL, "loops": LOOPS}
"""The tables inside values."""
