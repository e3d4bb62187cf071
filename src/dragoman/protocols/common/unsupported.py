"""What a request wishes for beyond its words, as far as all writers must agree about it.

A wish that another protocol cannot fulfil is refused if leaving it out would change what the answer means,
and dropped with a notice if the answer is merely another. The rule of a notice is the same whichever the
upstream.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from ...model.errors import BadRequest
from ...model.messages import Request, Settings, Tool
from .fields import Obj, is_array, is_object
from .notices import Notices

# Top-level fields that stand for a part of the conversation kept at the provider, or that have it done by
# somebody whom only that provider reaches.
_ELSEWHERE = {
    "cachedContent": "content cached at the provider cannot be sent elsewhere",
    "cached_content": "content cached at the provider cannot be sent elsewhere",
    "continuationToken": "an answer can be continued only by the provider that began it",
    "continuation_token": "an answer can be continued only by the provider that began it",
    "thread": "a thread kept at the provider cannot be continued elsewhere",
    "prompt": "a prompt stored at the provider cannot be sent elsewhere",
}
# Fields that change nothing in the answer another provider's model gives, or that say nothing new: how
# the bytes are to be padded, kept, moderated or accounted.
_HARMLESS = frozenset(
    {
        *("include", "client_metadata", "stream_options", "truncation", "moderation", "user"),
        *("safety_identifier", "prompt_cache_options", "prompt_cache_retention", "diagnostics"),
        *("mcp_servers",),  # which became tools
        *("safetySettings", "safety_settings", "betas", "inference_geo", "user_profile_id"),
    }
)
# Of these objects, what they say beyond what is understood; members not named here are losses.
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


def came_over(request: Request, protocol: str) -> bool:
    """Did it come over this very wire? Parts of it may have been changed since."""
    if request.raw is not None:
        return request.raw.protocol == protocol
    raws = (*(m.raw for m in request.messages), *(t.raw for t in request.tools))
    return any(raw is not None and raw.protocol == protocol for raw in raws)


def check_choice(request: Request) -> None:
    """A choice that names no tool is the client's mistake, whatever the protocol."""
    choice = request.settings.tool_choice
    if choice is None or choice.mode != "named":
        return
    if any(tool.hosted == "mcp" for tool in request.tools):
        return  # only the server knows what its tools are called
    if not any(t.name == choice.name and t.namespace == choice.namespace for t in request.tools):
        raise BadRequest(f"no tool is named {choice.name!r}", "settings.tool_choice")


def refuse_untranslatable(request: Request) -> None:
    """What can neither be carried to another protocol nor be left out."""
    check_choice(request)
    settings = request.settings
    if settings.n is not None and settings.n > 1:
        raise BadRequest("several answers at once cannot be translated", "settings.n")
    if settings.audio_out:
        raise BadRequest("answers in sound cannot be translated", "settings.audio_out")
    if settings.background:
        raise BadRequest("an answer in the background cannot be translated", "settings.background")
    if settings.previous_response_id is not None:
        message = f"no answer is known by the id {settings.previous_response_id!r}: send the whole history"
        raise BadRequest(message, "settings.previous_response_id")
    for key, value in (request.extras or {}).items():
        if key in _ELSEWHERE and value:
            raise BadRequest(_ELSEWHERE[key], f"extras.{key}")


def say_foreign(request: Request, notices: Notices) -> None:
    """One notice for each top-level field that only the client's own protocol understands."""
    for key, value in (request.extras or {}).items():
        if key in _HARMLESS or value in (None, {}, []) or _says_nothing(key, value):
            continue
        notices.say("opaque-dropped", f"extras.{key}", f"{key} means nothing to this upstream")


def _says_nothing(key: str, value: Any) -> bool:
    if key == "context_management":
        # Claude Code always asks for old thoughts to be cleared: another model never gets any.
        edits = value.get("edits") if is_object(value) else None
        return is_array(edits) and all(_clears_thoughts(edit) for edit in edits)
    if key in ("modalities", "responseModalities", "response_modalities"):
        return _is_text_only(value)
    members = _HARMLESS_MEMBERS.get(key)
    if members is None or not is_object(value):
        return False
    return all(name in members or _says_nothing(name, inner) for name, inner in value.items())


def _clears_thoughts(edit: Any) -> bool:
    return is_object(edit) and str(edit.get("type")).startswith("clear_thinking")


def _is_text_only(value: Any) -> bool:
    return is_array(value) and all(str(word).lower() == "text" for word in value)


def say_dropped(settings: Settings, names: Iterable[str], notices: Notices) -> None:
    """One notice for each of the settings `names` that was made and has no place at the upstream."""
    for name in names:
        if getattr(settings, name) not in (None, {}):
            notices.say(_RULES[name], f"settings.{name}", f"this upstream has no {name}")


def opaque_user(user: str | None, longest: int) -> str | None:
    """The user's id; Claude Code's is a whole JSON document, and too long a one goes as its hash."""
    if not user or len(user) <= longest:
        return user or None
    return hashlib.sha256(user.encode("utf-8", "surrogatepass")).hexdigest()


def words_only(metadata: Obj | None) -> Obj | None:
    """The metadata that OpenAI takes: at most sixteen pairs of strings."""
    pairs = [(k, v) for k, v in (metadata or {}).items() if isinstance(v, str)]
    return dict(pairs[:16]) or None


def say_deferred(tool: Tool, notices: Notices) -> None:
    """Tools that were to be looked up later are all sent at once: one loss, however many there are."""
    if tool.deferred:
        message = "tools cannot be looked up later here: all of them are sent at once"
        notices.say("deferred-tools-flattened", "tools", message)
