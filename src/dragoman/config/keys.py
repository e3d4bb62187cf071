"""Every key of `dragoman.toml`, section by section: its reader and its text in the manual.

`docs/reference/configuration.md` shows these rows; a test compares the two. Keys of tables inside values
(targets, models, loops) are in `nested_keys.py`.
"""

from __future__ import annotations

from typing import Any, get_args

from ..credentials.binding import key_headers
from ..profiles import Arguments
from ..protocols.base import Freeform
from ..protocols.registry import PROTOCOLS
from ..tools.rules import ANSWER_RULES, RULES
from . import network
from .nested_keys import (
    LOOPS,
    MODEL,
    TARGET,
    ConfigKey,
    Keys,
    client_key,
    credential,
    ip_network,
    loops,
    model,
    provider,
    target,
    tls,
)
from .values import (
    Context,
    choice,
    duration,
    flag,
    flag_or,
    glob,
    headers,
    list_of,
    names,
    path,
    positive_duration,
    positive_size,
    regex,
    size,
    text,
    whole,
)

targets = list_of(target, allow_single=True)
globs = list_of(glob, allow_single=True)

SERVER: Keys = {
    "host": ConfigKey(
        text, "text", '"127.0.0.1"', "The address to listen on. An address that is not loopback needs `keys`."
    ),
    "port": ConfigKey(whole(0, 65_535), "whole number", "4545", "The port to listen on; 0: any free port."),
    "unix": ConfigKey(
        path,
        "path",
        "-",
        "A Unix socket to listen on instead of `host` and `port`; only the owner may connect.",
    ),
    "tls": ConfigKey(tls, "table", "-", "`{ cert = PATH, key = PATH }`: serve HTTPS with this certificate."),
    "trusted_proxies": ConfigKey(
        list_of(ip_network),
        "list of texts",
        "[]",
        "Addresses or networks of reverse proxies whose X-Forwarded-For and X-Forwarded-Host are trusted.",
    ),
    "keys": ConfigKey(
        list_of(client_key),
        "list of texts",
        "[]",
        "Keys, one of which clients must send: `env:NAME`, or the key itself.",
    ),
    "allowed_hosts": ConfigKey(
        list_of(text),
        "list of texts",
        "[]",
        "Names that clients may use in the Host header, besides loopback names and `host`.",
    ),
    "workers": ConfigKey(whole(1, 256), "whole number", "1", "Number of processes that share the port."),
    "max_body": ConfigKey(positive_size, "size", '"64MB"', "The largest request body."),
    "max_streams": ConfigKey(whole(1), "whole number", "1000", "Exchanges at the same time, per worker."),
    "max_connections": ConfigKey(
        whole(1), "whole number", "4096", "Client connections at the same time, per worker."
    ),
    "client_timeout": ConfigKey(
        positive_duration,
        "time",
        '"30s"',
        "How long a client may take to send headers, pause within a body, or stop reading its answer.",
    ),
    "keepalive": ConfigKey(
        duration,
        "time",
        '"15s"',
        "Silence after which a client that accepts it gets a keepalive, also before the answer; 0: never.",
    ),
    "shutdown_grace": ConfigKey(
        duration, "time", '"30s"', "How long running answers may continue after a stop."
    ),
    "retries": ConfigKey(
        whole(0, 10),
        "whole number",
        "2",
        "Retries at one target after a temporary failure, before Dragoman tries the next target.",
    ),
    "store": ConfigKey(
        path,
        "path",
        "-",
        "The SQLite file for reasoning, stored responses and receipts; by default in the user's data folder.",
    ),
    "retention": ConfigKey(duration, "time", '"30d"', "How long the store keeps receipts and answers."),
    "ring": ConfigKey(
        size,
        "size",
        '"32MB"',
        "Memory for the bytes of the last exchanges, which the inspector shows, per worker; 0: none.",
    ),
    "record": ConfigKey(
        path, "path", "-", "A folder for recordings, one file per exchange. Without it, nothing is recorded."
    ),
    "redact": ConfigKey(
        list_of(regex),
        "list of texts",
        "[]",
        "Regular expressions. Text that matches is not shown, stored or recorded. Secrets never are.",
    ),
    "strict": ConfigKey(
        flag,
        "true or false",
        "false",
        "Refuse a request if part of it cannot be translated. Otherwise that part is dropped with a warning.",
    ),
    "direct": ConfigKey(
        flag, "true or false", "true", "Whether clients may choose an upstream with `upstream/model`."
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
    "provider": ConfigKey(
        provider, "text", "its own name", "A known provider that supplies every key that is not given here."
    ),
    "protocol": ConfigKey(
        _protocol,
        "text",
        "",
        f"{_listed(tuple(PROTOCOLS))}.",
    ),
    "base_url": ConfigKey(
        text,
        "text",
        "",
        "The base URL as the provider's SDK takes it. A missing or extra `/v1` is corrected.",
    ),
    "credential": ConfigKey(
        credential,
        "text or table",
        '"none"',
        "`env:NAME`, `file:PATH`, `command:…`, `antigravity`, `client`, `none` or a table (below).",
    ),
    "auth": ConfigKey(
        _auth,
        "text",
        "its protocol's",
        f"The header for the key: {_listed(_auths())}.",
    ),
    "headers": ConfigKey(headers, "table", "{}", "Extra headers to send."),
    "models": ConfigKey(
        list_of(model), "list", "[]", "Models to show in `/v1/models`: names, or tables with limits (below)."
    ),
    "connect_timeout": ConfigKey(positive_duration, "time", '"10s"', "How long connecting may take."),
    "idle_timeout": ConfigKey(
        positive_duration, "time", '"5m"', "How long an answer may stay silent before Dragoman gives up."
    ),
    "proxy": ConfigKey(
        network.proxy,
        "text",
        "-",
        "`http://…`, `https://…`, `socks5://…`, `socks5h://…` or `none`. Default: the environment's proxy.",
    ),
    "ca": ConfigKey(
        network.ca, "path", "-", "A PEM file with certificates to trust, in addition to the system's."
    ),
    "client_cert": ConfigKey(
        network.client_cert,
        "path or table",
        "-",
        "A client certificate: a PEM file with certificate and key, or `{ cert = PATH, key = PATH }`.",
    ),
    "strict": ConfigKey(flag, "true or false", "`server.strict`", "The same, for this upstream."),
    "chat_compatible": ConfigKey(
        flag,
        "true or false",
        "true",
        "For a Chat server other than OpenAI's: send no `developer` role and no freeform tools.",
    ),
    "max_tokens_field": ConfigKey(
        choice("max_tokens", "max_completion_tokens"),
        "text",
        '"max_tokens"',
        "The Chat field that limits the output. OpenAI's own servers want `max_completion_tokens`.",
    ),
    "reasoning_field": ConfigKey(
        text,
        "text",
        "-",
        "The Chat field in which the upstream wants its reasoning back (`reasoning_content`, …).",
    ),
    "ids": ConfigKey(
        choice("mistral", "any"),
        "text",
        "-",
        "A stricter rule for call ids than the protocol has: `mistral`.",
    ),
    "anthropic_version": ConfigKey(text, "text", '"2023-06-01"', "The `anthropic-version` header."),
    "default_max_tokens": ConfigKey(
        whole(1),
        "whole number",
        "32000",
        "The `max_tokens` for Anthropic, which requires it, if the client sends none.",
    ),
    "cache_marks": ConfigKey(
        flag_or("blocks"),
        "true, false or text",
        "its provider's, else `false`",
        "Mark prompts for Anthropic's cache if the client does not; `blocks`: not for Anthropic clients.",
    ),
    "compaction": ConfigKey(
        flag,
        "true or false",
        "its provider's, else `false`",
        "Whether the upstream compacts conversations itself. If not, Dragoman asks it for a summary.",
    ),
}

ROUTE: Keys = {
    "match": ConfigKey(
        globs, "glob or list", "", "The client's model name: `*` any text, `?` one character, `[ab]` one of."
    ),
    "to": ConfigKey(
        targets, "target or list", "", "The targets, tried in order: `upstream/model`, or tables (below)."
    ),
}

TIERS: Keys = {
    "small": ConfigKey(targets, "target or list", "-", "For model names that contain haiku, mini or flash."),
    "middle": ConfigKey(targets, "target or list", "-", "For model names that contain sonnet."),
    "big": ConfigKey(targets, "target or list", "-", "For model names that contain opus."),
}

TOOLS: Keys = {
    "invalid": ConfigKey(
        choice("pass", "reask", "error"),
        "text",
        '"pass"',
        "A call that no rule can mend: pass it on, ask the model again, or end with an error.",
    ),
    "reask_attempts": ConfigKey(
        whole(1, 10), "whole number", "2", "How many times `reask` asks the model again."
    ),
    "off": ConfigKey(
        names([*ANSWER_RULES, *(r.name for r in RULES)], "rule"),
        "list of texts",
        "[]",
        "Mending rules to switch off.",
    ),
    "loops": ConfigKey(
        loops, "table", "{}", "What to do when an agent repeats equal calls with equal results (below)."
    ),
}

CLIENT: Keys = {
    "arguments": ConfigKey(
        choice(*get_args(Arguments)),
        "text",
        "its profile's",
        "How tool arguments arrive. `whole`: in one piece; `live`: in fragments, as they come.",
    ),
    "freeform": ConfigKey(
        choice(*get_args(Freeform)),
        "text",
        "`function` for Cursor, else `custom`",
        "Calls of freeform tools in Chat: `custom`, or `function` with the raw text as arguments.",
    ),
    "keepalive": ConfigKey(duration, "time", "`server.keepalive`", "The same, for this client."),
}

TELEMETRY: Keys = {
    "traces": ConfigKey(
        flag,
        "true or false",
        "-",
        "Whether to send OpenTelemetry traces (needs `dragoman[otel]`). Default: if an endpoint is set.",
    ),
    "endpoint": ConfigKey(
        text,
        "text",
        "`OTEL_EXPORTER_OTLP_ENDPOINT`",
        "The collector's address for OTLP over HTTP: `http://…:4318`.",
    ),
}

ALIAS = ConfigKey(targets, "target or list", "-", "Another name for targets; shown in `/v1/models`.")

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
"""The tables of a config file, by their headers."""

SMALL_TABLES: dict[str, Keys] = {"a target": TARGET, "a model": MODEL, "loops": LOOPS}
"""Tables inside values."""
