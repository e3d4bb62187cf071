"""The keys of `[upstreams.NAME]`."""

from __future__ import annotations

from typing import Any

from ..credentials.binding import key_headers
from ..protocols.registry import upstreams
from . import network
from .nested_keys import ConfigKey, Keys, credential, model, provider
from .other_endpoints import OTHER_ENDPOINTS
from .values import (
    Context,
    choice,
    flag,
    flag_or,
    headers,
    list_of,
    place_name,
    positive_duration,
    text,
    whole_number,
)


def _protocol(value: Any, context: Context) -> str:
    return choice(*upstreams())(value, context)


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
        f"{_listed(tuple(upstreams()))}.",
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
        "`env:NAME`, `file:PATH`, `command:…`, `antigravity`, `aws`, `google`, `entra`, `client`, `none` "
        "or a table (below).",
    ),
    "credentials": ConfigKey(
        list_of(credential),
        "list",
        "-",
        "Several keys of this upstream, instead of `credential`: each text or table as there.",
    ),
    "auth": ConfigKey(
        _auth,
        "text",
        "its protocol's",
        f"The header for the key: {_listed(_auths())}.",
    ),
    "region": ConfigKey(place_name, "text", "-", "The AWS region of Bedrock: `us-east-1`."),
    "project": ConfigKey(place_name, "text", "-", "The Google Cloud project of Vertex AI."),
    "location": ConfigKey(
        place_name,
        "text",
        "-",
        "The location of Vertex AI: `global`, `us`, `eu`, or a region such as `us-east5`.",
    ),
    "api_version": ConfigKey(
        place_name, "text", "-", "The dated version of Azure's API, for `azure-deployments`: `2024-10-21`."
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
    **OTHER_ENDPOINTS,
    "web_search": ConfigKey(
        flag,
        "true or false",
        "true",
        "Whether the upstream may be asked to search the web itself. If not, `[search]` does it.",
    ),
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
        choice("mistral", "openai", "any"),
        "text",
        "-",
        "A stricter rule for call ids than the protocol has: `mistral`, `openai`.",
    ),
    "anthropic_version": ConfigKey(text, "text", '"2023-06-01"', "The `anthropic-version` header."),
    "default_max_tokens": ConfigKey(
        whole_number(1),
        "whole number",
        "32000",
        "The `max_tokens` for Anthropic, which requires it, if the client sends none.",
    ),
    "cache_marks": ConfigKey(
        flag_or("blocks"),
        "true, false or text",
        "its provider's, else `false`",
        "Mark prompts for the cache (Anthropic, Bedrock) if the client does not; `blocks`: not for Anthropic "
        "clients, and on Bedrock only for models known to have a cache.",
    ),
    "compaction": ConfigKey(
        flag,
        "true or false",
        "its provider's, else `false`",
        "Whether the upstream compacts conversations itself. If not, Dragoman asks it for a summary.",
    ),
}
