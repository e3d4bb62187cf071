"""Keys of tables inside values, and readers of values that refer to something else in the config.

A target, a model, `loops` and `tls` are small tables with keys. Credentials, providers, client keys and IP
networks are texts with a form that needs more than one check.
"""

from __future__ import annotations

import ipaddress
import os
from typing import Any, cast, get_args

import msgspec

from ..credentials.secret import Secret
from ..credentials.spec import CredentialSpec, parse, split_words
from ..model.messages import Effort
from .secret_reference import SecretReference, reference
from .types import LoopsConfig, ModelConfig, PriceConfig, TargetConfig, TlsConfig
from .values import (
    Context,
    InvalidValue,
    Read,
    choice,
    flag,
    list_of,
    nearest,
    number,
    params,
    path,
    table,
    text,
    toml_type,
    whole_number,
)


class ConfigKey(msgspec.Struct, frozen=True):
    """One key: its reader, and its row in the manual."""

    read: Read
    type: str
    default: str
    """As a user would write it. Empty: the key is required. `-`: the key has no default."""
    doc: str


Keys = dict[str, ConfigKey]


def read_table(value: Any, keys: Keys, context: Context) -> dict[str, Any]:
    """Read a table inside a value. An invalid key makes the whole value invalid."""
    found: dict[str, Any] = {}
    for name, item in table(value).items():
        if name not in keys:
            raise InvalidValue(f'has the unknown key "{name}"{nearest(name, keys)}', name)
        try:
            found[name] = keys[name].read(item, context)
        except InvalidValue as error:
            raise InvalidValue(f"{name} {error.message}", name, *error.below) from None
    return found


def _target_text(value: Any, context: Context) -> TargetConfig:
    content = text(value, context)
    upstream, slash, model = content.partition("/")
    if not slash or not model or not upstream:
        hint = f'; "{upstream}/*" keeps the client\'s model name' if upstream in context.upstreams else ""
        raise InvalidValue(f'must be "upstream/model", not "{content}"{hint}')
    if upstream not in context.upstreams:
        hint = nearest(upstream, context.upstreams)
        if upstream in context.providers:
            hint = f"; add [upstreams.{upstream}] to use it"
        raise InvalidValue(f'names the upstream "{upstream}", which is not configured{hint}')
    if model.count("*") > 1:
        raise InvalidValue(f'has more than one "*" in "{content}"')
    return TargetConfig(upstream=upstream, model=model)


TARGET: Keys = {
    "target": ConfigKey(
        _target_text, "text", "", "`upstream/model`; `*` is replaced by the client's model name."
    ),
    "weight": ConfigKey(
        number,
        "number",
        "-",
        "Adjacent targets with weights share conversations in proportion; others are tried in order.",
    ),
    "params": ConfigKey(
        params, "table", "{}", "Fields to set in the upstream request, named as in the upstream's protocol."
    ),
}


def target(value: Any, context: Context) -> TargetConfig:
    if not isinstance(value, dict):
        return _target_text(value, context)
    found = read_table(cast(Any, value), TARGET, context)
    if "target" not in found:
        raise InvalidValue('needs "target"')
    return msgspec.structs.replace(found.pop("target"), **found)


def named_target(value: Any, context: Context) -> TargetConfig:
    """A target with a fixed model. `*` is not allowed: no client's model name could replace it."""
    found = target(value, context)
    if "*" in found.model:
        raise InvalidValue(f'must name a model, not "{found.model}"')
    return found


MODEL: Keys = {
    "name": ConfigKey(text, "text", "", "The model's name at the upstream."),
    "context": ConfigKey(whole_number(1), "whole number", "-", "The context window, in tokens."),
    "max_output": ConfigKey(
        whole_number(1),
        "whole number",
        "-",
        "The longest answer, in tokens. Dragoman lowers requests for more to it.",
    ),
    "reasons": ConfigKey(flag, "true or false", "its known value", "Whether it accepts reasoning settings."),
    "efforts": ConfigKey(
        list_of(choice(*get_args(Effort))),
        "list of strings",
        "its known ones",
        "The reasoning efforts that it accepts. A request for another one gets the nearest.",
    ),
    "images": ConfigKey(
        flag,
        "true or false",
        "its known value",
        "Whether it accepts images. If not, `[images]` decides what it gets instead.",
    ),
    "audio": ConfigKey(flag, "true or false", "its known value", "Whether it accepts audio."),
    "search": ConfigKey(
        flag, "true or false", "its known value", "Whether it accepts Chat's `web_search_options`."
    ),
    "media_results": ConfigKey(
        flag, "true or false", "its known value", "Whether tool results may contain images and documents."
    ),
    "sampling": ConfigKey(
        flag, "true or false", "its known value", "Whether it accepts `temperature`, `top_p` and penalties."
    ),
    "stop": ConfigKey(
        flag,
        "true or false",
        "its known value",
        "Whether it accepts Chat's `stop`. If not, Dragoman ends its answer there.",
    ),
    "verbosity": ConfigKey(flag, "true or false", "its known value", "Whether it accepts `verbosity`."),
    "max_tokens": ConfigKey(
        flag,
        "true or false",
        "its known value",
        "Whether it accepts Chat's `max_tokens`. If not, it gets `max_completion_tokens`.",
    ),
}


def model(value: Any, context: Context) -> ModelConfig:
    if not isinstance(value, dict):
        return ModelConfig(name=text(value, context))
    found = read_table(cast(Any, value), MODEL, context)
    if "name" not in found:
        raise InvalidValue('needs "name"')
    return ModelConfig(**found)


PRICE: Keys = {
    "input": ConfigKey(number, "number", "", "Tokens of the prompt that were not cached."),
    "output": ConfigKey(number, "number", "", "Tokens of the answer, reasoning included."),
    "cache_read": ConfigKey(
        number, "number", "`input`", "Tokens of the prompt that were read from the cache."
    ),
    "cache_write": ConfigKey(
        number, "number", "`input`", "Tokens of the prompt that were written to the cache."
    ),
}


def price(value: Any, context: Context) -> PriceConfig:
    found = read_table(value, PRICE, context)
    for name in ("input", "output"):
        if name not in found:
            raise InvalidValue(f'needs "{name}", in US dollars per million tokens')
    return PriceConfig(**found)


LOOPS: Keys = {
    "note_after": ConfigKey(
        whole_number(0),
        "whole number",
        "0",
        "Add one note for the model after this many equal calls; 0: never.",
    ),
    "stop_after": ConfigKey(
        whole_number(0),
        "whole number",
        "0",
        "Stop with a clear message after this many equal calls; 0: never.",
    ),
}


def loops(value: Any, context: Context) -> LoopsConfig:
    return LoopsConfig(**read_table(value, LOOPS, context))


def search_url(value: Any, context: Context) -> str:
    content = text(value, context)
    if not content.startswith(("http://", "https://")):
        raise InvalidValue(f'must begin with "http://" or "https://", not "{content}"')
    return content


def command(value: Any, context: Context) -> tuple[str, ...]:
    """A program and its arguments: a list, or one text that is split like in a shell."""
    if isinstance(value, list):
        words = tuple(text(word, context) for word in cast(list[Any], value))
    else:
        content = text(value, context)
        try:
            words = tuple(split_words(content))
        except ValueError as error:
            raise InvalidValue(f'cannot be split into words: "{content}": {error}') from None
    if not words:
        raise InvalidValue("must name a program")
    return (os.path.expanduser(words[0]), *words[1:])


def provider(value: Any, context: Context) -> str:
    name = text(value, context)
    if name not in context.providers:
        raise InvalidValue(f'names the provider "{name}", which is unknown{nearest(name, context.providers)}')
    return name


def client_key(value: Any, context: Context) -> SecretReference:
    """A key that clients must send: `env:NAME`, `file:PATH`, or the key itself. Errors never repeat it."""
    content = text(value, context)
    return reference(content, context) or SecretReference(literal=Secret(content))


def credential(value: Any, context: Context) -> CredentialSpec:
    if not isinstance(value, (str, dict)):
        hint = '; several keys are written as "credentials"' if isinstance(value, list) else ""
        raise InvalidValue(f"must be text or a table, not {toml_type(cast(Any, value))}{hint}")
    try:
        spec = parse(cast(Any, value))
    except ValueError as error:
        raise InvalidValue(f"cannot be used: {error}") from None
    if spec.path and not spec.path.startswith("~"):
        return msgspec.structs.replace(spec, path=str(context.folder / spec.path))
    return spec


def ip_network(value: Any, context: Context) -> str:
    content = text(value, context)
    try:
        return str(ipaddress.ip_network(content, strict=False))
    except ValueError:
        raise InvalidValue(
            f'must be an IP address or a network such as "10.0.0.0/8", not "{content}"'
        ) from None


TLS: Keys = {
    "cert": ConfigKey(path, "path", "", "The certificate and its chain, in PEM."),
    "key": ConfigKey(path, "path", "", "The private key of the certificate, in PEM, without a password."),
}


def tls(value: Any, context: Context) -> TlsConfig:
    found = read_table(value, TLS, context)
    for name in TLS:
        if name not in found:
            raise InvalidValue(f'needs "{name}"')
    return TlsConfig(**found)
