"""The messages of a Chat request and their content parts, as typed structs.

They include members that are in use but not in OpenAI's spec.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ....model.messages import Cache

Obj = dict[str, Any]
_NOTHING = tuple(map(msgspec.Raw, (b"null", b'""', b"[]")))


def is_nothing(value: Any) -> bool:
    """Is an undecoded member missing, null or empty?"""
    return value is None or value in _NOTHING


class Function(msgspec.Struct, frozen=True, gc=False):
    name: str
    arguments: str | Obj | None = None
    """Text. Mistral and Ollama answer with an object, and agents send it back."""
    parsed_arguments: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """Added by the SDK's stream helper, and echoed by loops. Upstreams refuse it."""


class Custom(msgspec.Struct, frozen=True, gc=False):
    """The freeform tool of a call."""

    name: str | None = None
    input: str | None = None


class Call(msgspec.Struct, frozen=True, gc=False):
    """An entry of `tool_calls`."""

    id: str
    type: str | None = None
    function: Function | None = None
    custom: Custom | None = None
    """Snowflake adds an empty `custom` to every call."""
    extra_content: Any = None
    """Google's Chat endpoint has the signature of a call here."""
    index: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """Added by the SDK's stream helper, and echoed by loops. Upstreams refuse it."""


class Message(msgspec.Struct, tag_field="role", frozen=True, gc=False):
    content: str | list[msgspec.Raw] | None = None
    name: str | None = None


class System(Message, tag="system", frozen=True, gc=False): ...


class Developer(Message, tag="developer", frozen=True, gc=False): ...


class User(Message, tag="user", frozen=True, gc=False): ...


class Assistant(Message, tag="assistant", frozen=True, gc=False):
    tool_calls: list[Call] | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[Obj] | None = None
    annotations: list[Obj] | None = None
    audio: Obj | None = None
    images: list[msgspec.Raw] | None = None
    """Generated images, in the form of OpenRouter and our own encoder."""
    function_call: Function | None = None
    """Deprecated, and without an id."""


class ToolMessage(Message, tag="tool", frozen=True, gc=False, kw_only=True):
    tool_call_id: str


class FunctionMessage(msgspec.Struct, tag_field="role", tag="function", frozen=True, gc=False):
    """The deprecated result of a `function_call`: it has the function's name and no id."""

    name: str
    content: str | None = None


AnyMessage = System | Developer | User | Assistant | ToolMessage | FunctionMessage
ROLES = ("developer", "system", "user", "assistant", "tool", "function")


class Part(msgspec.Struct, tag_field="type", frozen=True, gc=False, kw_only=True):
    """The base of all parts. The cache breakpoint is OpenAI's, or Anthropic's form (OpenRouter)."""

    prompt_cache_breakpoint: Cache | None = None
    cache_control: Cache | None = None

    @property
    def cache(self) -> Cache | None:
        return self.prompt_cache_breakpoint or self.cache_control


class TextPart(Part, tag="text", frozen=True, gc=False):
    text: str


class RefusalPart(Part, tag="refusal", frozen=True, gc=False):
    refusal: str


class ImageUrl(msgspec.Struct, frozen=True, gc=False):
    """The URL of an image or video: a `data:` URL, or any other."""

    url: str
    detail: str | None = None


class ImagePart(Part, tag="image_url", frozen=True, gc=False):
    image_url: ImageUrl | str
    """Clients of Mistral send the URL itself."""


class VideoPart(Part, tag="video_url", frozen=True, gc=False):
    """A video. It is not in OpenAI's spec, but Qwen, Kimi, vLLM and OpenRouter share this form."""

    video_url: ImageUrl


class Audio(msgspec.Struct, frozen=True, gc=False):
    format: str
    data: str


class AudioPart(Part, tag="input_audio", frozen=True, gc=False):
    input_audio: Audio


class File(msgspec.Struct, frozen=True, gc=False):
    filename: str | None = None
    file_data: str | None = None
    file_id: str | None = None


class FilePart(Part, tag="file", frozen=True, gc=False):
    file: File


class DocumentPart(Part, tag="document_url", frozen=True, gc=False):
    """A document in Mistral's form: a `data:` URL, or any other."""

    document_url: str
    document_name: str | None = None


AnyPart = TextPart | RefusalPart | ImagePart | VideoPart | AudioPart | FilePart | DocumentPart
TYPES = frozenset({"text", "refusal", "image_url", "video_url", "input_audio", "file", "document_url"})
