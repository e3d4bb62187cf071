"""Write a neutral request as the body of `POST /v1/messages`."""

from __future__ import annotations

from typing import Any

import msgspec

from ....model.messages import Cache, Request
from ...base import Outgoing, Target
from ...common import cache_breakpoints, unsupported
from ...common.call_ids import IdRule
from ...common.fields import Obj, is_object
from ...common.notices import Notices
from ...common.tool_names import NameRule, ToolNames
from ..own import NAME, is_own
from .thinking import fitted, think_if_signed, unchanged_thinking, write_thinking
from .write_blocks import cache_control
from .write_prompt import Prompt, PromptWriter
from .write_tools import JSON_ONLY, schema_in_words, write_format, write_tool_choice

PATH = "/v1/messages"
# Anthropic documents the characters of an id and no length. The limit leaves room for an escaped id of
# another provider, such as Kimi's `functions.Bash:0`.
IDS = IdRule(r"[A-Za-z0-9_-]+", 4096)
NAMES = NameRule(r"[A-Za-z0-9_-]+", 128)

# The names of an Anthropic client are legal for an Anthropic upstream already, and so are its toolsets.
_AS_GIVEN = NameRule(r"(?s).+", 1 << 16, namespaces=True)
# This API version refuses sampling settings with a 400, even those with default values:
# https://platform.claude.com/docs/en/api/versioning
_WITHOUT_SAMPLING = "2026-10-21"
# The values (least, most) that Anthropic accepts while the model thinks.
_SAMPLING = {"temperature": (1, 1), "top_p": (0.95, 1), "top_k": (1, 0)}
_TIERS = {"auto": "auto", "priority": "auto", "default": "standard_only"}
_MAX_USER_LENGTH = 256
_SERVERS_BETA = "mcp-client-2025-11-20"
"""Without this beta header, Anthropic refuses `mcp_servers` as an unknown field."""
_NO_COUNTERPART = (
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "seed",
    "verbosity",
)


def write_request(request: Request, target: Target) -> Outgoing:
    """Write the body, and what the translation of the answer needs to know about it."""
    return _Writer(request, target).outgoing()


def _unsampled(target: Target) -> str:
    """Why no sampling setting can be sent. Empty: they can."""
    # The upstream's version is a fact of the config and may be newer than the version that the client was
    # written for.
    if target.anthropic_version == _WITHOUT_SAMPLING:
        return "this version of the API refuses it"
    return f"{target.model} does not take it" if target.takes.sampling is False else ""


def _drop_sampling(key: str, why: str, notices: Notices) -> None:
    notices.warn(f"{key.replace('_', '-')}-dropped", f"settings.{key}", why)


class _Writer:
    def __init__(self, request: Request, target: Target) -> None:
        self._request = request
        self._settings = request.settings
        self._target = target
        self._notices = Notices(target.strict)
        self._own = unsupported.was_sent_in(request, NAME)
        self._names = ToolNames(request.tools, _AS_GIVEN if self._own else NAMES)
        self._takes = target.takes

    def outgoing(self) -> Outgoing:
        if not self._own:
            unsupported.refuse_untranslatable(self._request)
        unsupported.check_choice(self._request)
        writer = PromptWriter(self._request, self._target, self._names, self._notices, own=self._own)
        ids, instruction = self._target.ids or IDS, self._instruction()
        prompt = writer.write(ids, instruction, remembers=self._remembers())
        raw = self._request.raw
        body = raw.value if is_own(raw) else self._body(prompt)
        if self._own:
            body = self._fitted(body, prompt)
        return Outgoing(
            members=body,
            path=PATH,
            names=self._names,
            notices=self._notices.all(),
            # Anthropic refuses a stop sequence of white space only. Dragoman looks for it in the answer.
            stop=() if self._own else tuple(s for s in self._settings.stop if s and not s.strip()),
            betas=(*self._request.betas, *((_SERVERS_BETA,) if prompt.servers else ())),
        )

    def _remembers(self) -> bool:
        # Anthropic refuses a history with calls and no tools. If the client sent it so, it stays so.
        raw = self._request.raw
        return bool(self._request.tools) or not is_own(raw) or not _is_empty(raw.value.get("tools"))

    def _fitted(self, given: Obj, prompt: Prompt) -> Obj:
        """The body `given` of a client that speaks Anthropic, without what this model refuses."""
        body = {**given, "model": self._target.model}
        for key in ("system", "messages", "tools"):
            written = getattr(prompt, key)
            if written:
                body[key] = written
            elif not _is_empty(given.get(key)):
                del body[key]
        if prompt.tools and not prompt.callable:
            body["tool_choice"] = {"type": "none"}
        if not prompt.copied:
            thinking = think_if_signed(given.get("thinking"), prompt.messages, self._notices)
            body |= {} if thinking is None else {"thinking": thinking}
        body = fitted(body, self._settings.reasoning, self._target, self._notices)
        why = _unsampled(self._target)
        for key in _SAMPLING if why else ():
            if body.pop(key, None) is not None:
                _drop_sampling(key, why, self._notices)
        # `True`, not "blocks": this mark is for the whole request, so the client's own blocks stay as they
        # are. GLM, which also speaks this protocol, answers 400 to the field.
        if self._target.cache_marks is True and cache_breakpoints.marks_nothing(self._request):
            cache_breakpoints.note_added("one mark for the whole request", self._notices)
            body["cache_control"] = cache_control(Cache())
        return body

    def _body(self, prompt: Prompt) -> Obj:
        """The body from the neutral request. For a client that speaks Anthropic, `_fitted` completes it."""
        settings, max_tokens = self._settings, self._settings.max_tokens
        if max_tokens is None:
            # Required by Anthropic and optional in all other protocols, so there is a default.
            max_tokens = self._target.default_max_tokens
        if self._own:
            thinking, effort = unchanged_thinking(settings.reasoning)
        else:
            thinking, effort = write_thinking(settings.reasoning, self._target, max_tokens, self._notices)
            thinking = think_if_signed(thinking, prompt.messages, self._notices)
        # The order of the fields is fixed: the same conversation must give the same bytes, for the prompt
        # cache.
        body = {
            "model": self._target.model,
            "max_tokens": max_tokens,
            "system": prompt.system,
            "messages": prompt.messages,
            "tools": prompt.tools or None,
            "mcp_servers": prompt.servers or None,
            "tool_choice": self._tool_choice(prompt, thinking),
            "thinking": thinking,
            "output_config": self._output_config(effort),
            **self._sampling(thinking),
            "stop_sequences": [s for s in settings.stop if self._own or s.strip()] or None,
            "metadata": self._metadata(),
            "service_tier": _TIERS.get(settings.service_tier or ""),
            "speed": "fast" if settings.service_tier in ("fast", "ultrafast") else None,
            "cache_control": None if settings.cache is None else cache_control(settings.cache),
            "stream": True if self._request.stream else None,
        }
        unsupported.warn_dropped(settings, _NO_COUNTERPART, self._notices)
        return self._with_extras({key: value for key, value in body.items() if value is not None})

    def _tool_choice(self, prompt: Prompt, thinking: Obj | None) -> Obj | None:
        offered = prompt.tools if prompt.callable else []
        on_budget = not self._own and thinking is not None and thinking["type"] == "enabled"
        written = write_tool_choice(self._settings, offered, self._names, on_budget, self._notices)
        return {"type": "none"} if prompt.tools and not offered else written

    def _instruction(self) -> str | None:
        """The instruction to answer in JSON, for requests that Anthropic has no setting for."""
        wanted = self._settings.format
        if wanted is None or not self._formats_in_words():
            return None
        message = "this upstream has no JSON mode: the prompt asks for JSON"
        self._notices.warn("json-mode-emulated", "settings.format", message)
        return JSON_ONLY if wanted.kind == "json" else schema_in_words(wanted)

    def _formats_in_words(self) -> bool:
        wanted = self._settings.format
        unheld = not self._own and self._takes.schema_output is False
        # Anthropic has structured output with a schema, but no mode for any JSON.
        return wanted is not None and (wanted.kind == "json" or unheld)

    def _output_config(self, effort: str | None) -> Obj | None:
        config: Obj = {"effort": effort} if effort else {}
        wanted = self._settings.format
        if wanted is not None and self._own:
            config["format"] = {"type": "json_schema", "schema": wanted.schema}
        elif wanted is not None and not self._formats_in_words():
            config["format"] = write_format(wanted, self._notices)
        return config or None

    def _sampling(self, thinking: Obj | None) -> Obj:
        """The sampling settings that this model and this API version accept."""
        given: Obj = {key: getattr(self._settings, key) for key in _SAMPLING}
        kept = {key: value for key, value in given.items() if value is not None}
        if self._own:
            return kept
        thinks = thinking is not None and thinking["type"] != "disabled"
        for key in list(kept):
            why = self._unsampled(key, kept, thinks)
            if why:
                del kept[key]
                _drop_sampling(key, why, self._notices)
        # OpenAI and Gemini allow temperatures up to 2, Anthropic up to 1.
        if kept.get("temperature", 0) > 1:
            kept["temperature"] = 1
            message = "Anthropic's highest temperature is 1"
            self._notices.warn("temperature-clamped", "settings.temperature", message)
        return kept

    def _unsampled(self, key: str, kept: Obj, thinks: bool) -> str:
        """Why a setting cannot be sent. Empty: it can."""
        never = _unsampled(self._target)
        if never:
            return never
        least, most = _SAMPLING[key]
        if thinks and not least <= kept[key] <= most:
            return "a thinking model does not take it"
        if self._takes.one_sampling and key == "top_p" and "temperature" in kept:
            return "temperature and top_p exclude each other"
        return ""

    def _metadata(self) -> Obj | None:
        given = self._settings
        if self._own:
            return ({"user_id": given.user} if given.user else {}) | (given.metadata or {}) or None
        user = unsupported.opaque_user(given.user, _MAX_USER_LENGTH)
        return {"user_id": user} if user else None

    def _with_extras(self, body: Obj) -> Obj:
        if not self._own:
            unsupported.note_unsupported_fields(self._request, self._notices)
            return body
        for key, value in (self._request.extras or {}).items():
            # The reader split `output_config` into its neutral and its unknown members.
            both = key == "output_config" and is_object(value)
            body[key] = body.get(key, {}) | value if both else value
        return body


def _is_empty(given: Any) -> bool:
    """Did the client send no system prompt, messages or tools? Then the member stays as it came."""
    return not (msgspec.json.decode(given) if isinstance(given, msgspec.Raw) else given)
