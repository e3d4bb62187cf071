"""Features of a request that another protocol does not support. The rules are the same for all writers.

A feature is refused if the answer would mean something else without it. Otherwise it is dropped with a
notice. The notice has the same rule name for every upstream.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from ...model.errors import BadRequest
from ...model.messages import Request, Settings, Tool
from .fields import Obj, is_array, is_object
from .notices import Notices

# Top-level fields that refer to data or servers which only the client's provider can reach. The request is
# refused: without them, the model would answer another conversation.
_PROVIDER_STATE = {
    "cachedContent": "content cached at the provider cannot be sent elsewhere",
    "cached_content": "content cached at the provider cannot be sent elsewhere",
    "continuationToken": "an answer can be continued only by the provider that began it",
    "continuation_token": "an answer can be continued only by the provider that began it",
    "thread": "a thread kept at the provider cannot be continued elsewhere",
    "prompt": "a prompt stored at the provider cannot be sent elsewhere",
}
# Fields without influence on the content of another provider's answer: padding, storage, moderation,
# accounting.
HARMLESS = frozenset(
    {
        *("include", "client_metadata", "stream_options", "truncation", "moderation", "user"),
        *("safety_identifier", "prompt_cache_options", "prompt_cache_retention", "diagnostics"),
        *("mcp_servers",),  # which became tools
        *("safetySettings", "safety_settings", "betas", "inference_geo", "user_profile_id"),
    }
)
# Members of these objects that are harmless, too. Any other member needs a notice.
_HARMLESS_MEMBERS: dict[str, frozenset[str]] = {
    "reasoning": frozenset({"summary", "generate_summary", "context"}),
    "text": frozenset(),
    "toolConfig": frozenset({"includeServerSideToolInvocations", "functionCallingConfig"}),
    "generationConfig": frozenset({"mediaResolution", "audioTimestamp", "enableAffectiveDialog"}),
}
_RULES = {
    "top_k": "top-k-dropped",
    "presence_penalty": "penalties-dropped",
    "frequency_penalty": "penalties-dropped",
    "logit_bias": "logit-bias-dropped",
    "logprobs": "logprobs-dropped",
    "seed": "seed-dropped",
    "verbosity": "verbosity-dropped",
}


def was_sent_in(request: Request, protocol: str) -> bool:
    """Did the client send this request in `protocol`? True even if parts of it were changed since."""
    if request.raw is not None:
        return request.raw.protocol == protocol
    raws = (*(m.raw for m in request.messages), *(t.raw for t in request.tools))
    return any(raw is not None and raw.protocol == protocol for raw in raws)


def check_choice(request: Request) -> None:
    """Refuse a tool choice that names an unknown tool."""
    choice = request.settings.tool_choice
    if choice is None or choice.mode != "named":
        return
    if any(tool.hosted == "mcp" for tool in request.tools):
        return  # only the server knows what its tools are called
    if not any(t.name == choice.name and t.namespace == choice.namespace for t in request.tools):
        raise BadRequest(f"no tool is named {choice.name!r}", "settings.tool_choice")


def refuse_untranslatable(request: Request) -> None:
    """Refuse features that can neither be translated nor dropped."""
    check_choice(request)
    settings = request.settings
    if settings.n is not None and settings.n > 1:
        # Several requests could emulate it, but the user would pay for each of them without knowing.
        raise BadRequest("this upstream gives only one answer: ask for one", "settings.n")
    if settings.audio_out:
        raise BadRequest("audio answers cannot be translated: ask for text", "settings.audio_out")
    if settings.background:
        raise BadRequest("background answers cannot be translated: ask for a stream", "settings.background")
    if settings.previous_response_id is not None:
        message = f"there is no response {settings.previous_response_id!r}: send the whole conversation"
        raise BadRequest(message, "settings.previous_response_id")
    for key, value in (request.extras or {}).items():
        if key in _PROVIDER_STATE and value:
            raise BadRequest(_PROVIDER_STATE[key], f"extras.{key}")


def note_unsupported_fields(request: Request, notices: Notices) -> None:
    """Add one notice for each top-level field that only the client's own protocol supports."""
    for key, value in (request.extras or {}).items():
        if key in HARMLESS or value in (None, {}, []) or _is_harmless(key, value):
            continue
        notices.warn("opaque-dropped", f"extras.{key}", f"this upstream does not support {key}")


def _is_harmless(key: str, value: Any) -> bool:
    if key == "context_management":
        # Claude Code always asks to clear old thinking. Other upstreams never get any.
        edits = value.get("edits") if is_object(value) else None
        return is_array(edits) and all(_clears_thoughts(edit) for edit in edits)
    if key in ("modalities", "responseModalities", "response_modalities"):
        return _is_text_only(value)
    members = _HARMLESS_MEMBERS.get(key)
    if members is None or not is_object(value):
        return False
    return all(name in members or _is_harmless(name, inner) for name, inner in value.items())


def _clears_thoughts(edit: Any) -> bool:
    return is_object(edit) and str(edit.get("type")).startswith("clear_thinking")


def _is_text_only(value: Any) -> bool:
    return is_array(value) and all(str(word).lower() == "text" for word in value)


def warn_dropped(settings: Settings, names: Iterable[str], notices: Notices) -> None:
    """Add one notice for each of the settings `names` that the client sets and the upstream lacks."""
    for name in names:
        if getattr(settings, name) not in (None, {}):
            notices.warn(_RULES[name], f"settings.{name}", f"this upstream has no {name}")


def opaque_user(user: str | None, max_length: int) -> str | None:
    """The user's id, or its hash if it is too long: Claude Code sends a whole JSON document as id."""
    if not user or len(user) <= max_length:
        return user or None
    return hashlib.sha256(user.encode("utf-8", "surrogatepass")).hexdigest()


def string_pairs(metadata: Obj | None) -> Obj | None:
    """The metadata that OpenAI accepts: at most sixteen pairs of strings."""
    pairs = [(k, v) for k, v in (metadata or {}).items() if isinstance(v, str)]
    return dict(pairs[:16]) or None


def warn_deferred(tool: Tool, notices: Notices) -> None:
    """Add one notice for all deferred tools: an upstream without tool search gets all of them at once."""
    if tool.deferred:
        message = "this upstream has no tool search: all deferred tools are sent at once"
        notices.warn("deferred-tools-flattened", "tools", message)
