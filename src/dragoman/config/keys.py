"""Every key of `dragoman.toml`, section by section: its reader and its text in the manual.

`docs/reference/configuration.md` shows these rows; a test compares the two. Keys of tables inside values
(targets, models, loops) are in `nested_keys.py`.
"""

from __future__ import annotations

from typing import get_args

from ..profiles import Arguments
from ..protocols.base import Freeform
from ..tools.rules import ANSWER_RULES, RULES
from . import team_keys
from .nested_keys import (
    LOOPS,
    MODEL,
    PRICE,
    TARGET,
    ConfigKey,
    Keys,
    client_key,
    ip_network,
    loops,
    named_target,
    price,
    target,
    tls,
)
from .search_keys import SEARCH
from .store_keys import STORE
from .upstream_keys import UPSTREAM
from .values import (
    choice,
    duration,
    flag,
    glob,
    list_of,
    names,
    path,
    positive_duration,
    positive_size,
    regex,
    size,
    text,
    whole_number,
)
from .when import WHEN, when

targets = list_of(target, allow_single=True)
globs = list_of(glob, allow_single=True)

SERVER: Keys = {
    "host": ConfigKey(
        text, "text", '"127.0.0.1"', "The address to listen on. An address that is not loopback needs keys."
    ),
    "port": ConfigKey(
        whole_number(0, 65_535), "whole number", "4545", "The port to listen on; 0: any free port."
    ),
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
        "Keys without a name, each an admin: `env:NAME`, `file:PATH`, or the key itself.",
    ),
    "allowed_hosts": ConfigKey(
        list_of(text),
        "list of texts",
        "[]",
        "Names that clients may use in the Host header, besides loopback names and `host`.",
    ),
    "workers": ConfigKey(
        whole_number(1, 256), "whole number", "1", "Number of processes that share the port."
    ),
    "max_body": ConfigKey(positive_size, "size", '"64MB"', "The largest request body."),
    "max_upload": ConfigKey(
        positive_size, "size", '"512MB"', "The largest file for `/v1/files`; it is sent on while it arrives."
    ),
    "max_streams": ConfigKey(
        whole_number(1), "whole number", "1000", "Exchanges at the same time, per worker."
    ),
    "max_connections": ConfigKey(
        whole_number(1), "whole number", "4096", "Client connections at the same time, per worker."
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
    "shutdown_delay": ConfigKey(
        duration, "time", '"0s"', "How long requests are still taken after a stop, with `/readyz` at 503."
    ),
    "retries": ConfigKey(
        whole_number(0, 10),
        "whole number",
        "2",
        "Retries at one target after a temporary failure, before Dragoman tries the next target.",
    ),
    **STORE,
    "ring": ConfigKey(
        size,
        "size",
        '"32MB"',
        "Memory for the bytes of the last exchanges, which the inspector shows, per worker; 0: none.",
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


ROUTE: Keys = {
    "match": ConfigKey(
        globs,
        "glob or list",
        "*needed*; with `when`: `*`",
        "The client's model name: `*` any text, `?` one character, `[ab]` one of.",
    ),
    "when": ConfigKey(
        when, "table", "-", "Conditions on the request (below). The route counts only if all of them hold."
    ),
    "to": ConfigKey(
        targets, "target or list", "", "The targets, tried in order: `upstream/model`, or tables (below)."
    ),
    "prefer": ConfigKey(
        choice("listed", "reliable"),
        "text",
        "listed",
        "`reliable`: targets whose recent answers were certainly better come first. Not with weights.",
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
        whole_number(1, 10), "whole number", "2", "How many times `reask` asks the model again."
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

IMAGES: Keys = {
    "describe_with": ConfigKey(
        named_target,
        "target",
        "-",
        "The model that describes images for models that cannot see. Without it, they get a placeholder.",
    ),
    "timeout": ConfigKey(positive_duration, "time", '"60s"', "How long a description may take."),
}

ALIAS = ConfigKey(targets, "target or list", "-", "Another name for targets; shown in `/v1/models`.")
MODEL_PRICE = ConfigKey(
    price, "table", "-", "What a model costs (below), by a glob on `upstream/model` or on the model's name."
)

SECTIONS: dict[str, Keys] = {
    "[server]": SERVER,
    "[upstreams.NAME]": UPSTREAM,
    "[[routes]]": ROUTE,
    "[aliases]": {"NAME": ALIAS},
    "[tiers]": TIERS,
    "[tools]": TOOLS,
    "[clients.NAME]": CLIENT,
    "[search]": SEARCH,
    "[images]": IMAGES,
    "[prices]": {"GLOB": MODEL_PRICE},
    "[telemetry]": TELEMETRY,
    "[keys.NAME]": team_keys.KEY,
    "[teams.NAME]": team_keys.TEAM,
    "[limits]": team_keys.LIMITS,
}
"""The tables of a config file, by their headers."""

SMALL_TABLES: dict[str, Keys] = {
    "a target": TARGET,
    "when": WHEN,
    "a model": MODEL,
    "loops": LOOPS,
    "a price": PRICE,
}
"""Tables inside values."""
