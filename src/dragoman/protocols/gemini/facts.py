"""Facts about Gemini's generateContent: its paths, headers, counts, lists, and how its servers behave."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from ...model.messages import Part, Seal, Thinking, ToolCall
from ..common.fields import is_array, is_object
from ..facts import (
    Auth,
    BaseUrlRule,
    Counting,
    Endpoints,
    Headers,
    ModelListFormat,
    Obj,
    OtherEndpoint,
    ReasoningReplay,
    SdkObjects,
    Server,
    ToolForm,
    output_limiter,
)
from .request.keys import camel
from .request.read_tools import read_tool

_METHODS = ("generateContent", "streamGenerateContent", "countTokens")
_KEY = "x-goog-api-key"
_WRAPPER = "generateContentRequest"
_TABLES = ("generationConfig", "generation_config")
_limit = output_limiter("maxOutputTokens", "max_output_tokens")
_MARKS = frozenset({"candidates", "usageMetadata", "promptFeedback", "responseId"})
_SDK_MARKS = frozenset({"candidates", "usage_metadata", "response_id"})
_ARGUMENTS = frozenset({"args", "response"})


def _claims(path: str, headers: Headers) -> bool:
    own = path.startswith(("/v1beta", "/v1alpha", "/upload/", "/download/"))
    return own or _KEY in headers or ":" in path


def _wants_array(query: Headers, headers: Headers) -> bool:
    """Google streams server-sent events only on request (`alt=sse`), and a JSON array otherwise."""
    asked = query.get("alt", query.get("$alt", ""))
    return asked != "sse" and "text/event-stream" not in headers.get("accept", "")


def _wrapped(body: Obj, model: str) -> Obj:
    return {_WRAPPER: {"model": f"models/{model}", **body}}


def _unwrapped(body: Obj) -> Obj:
    """google-genai may wrap the request for counting in `generateContentRequest`."""
    inner: Any = body.get(_WRAPPER)
    return inner if is_object(inner) else body


def _answers(entry: Obj) -> bool:
    """Google also lists embedding models. They do not generate content."""
    methods: Any = entry.get("supportedGenerationMethods")
    return not is_array(methods) or _METHODS[0] in methods


def _entry(name: str, title: str) -> Obj:
    return {"name": f"models/{name}", "displayName": title, "supportedGenerationMethods": list(_METHODS)}


def limit_output(body: Obj, most: int, budget: int | None) -> Obj:
    """Limit a body to `most` output tokens."""
    return {**body, **{key: _limit(body[key], most, None) for key in _TABLES if is_object(body.get(key))}}


def _own_version(path: str, query: str) -> bool:
    # Vertex has the version at the front of the path: `/v1/projects/…/publishers/google/models`.
    return "/publishers/" in path or re.search(r"/v1alpha$", path) is not None


def _is_tool(tool: Obj) -> bool:
    return "functionDeclarations" in tool or "function_declarations" in tool


def _is_whole(frame: Obj, event: str) -> bool | None:
    return None if _MARKS.isdisjoint(frame) else False


def _on_wire(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """google-genai dumps objects with snake_case names: `finish_reason` for `finishReason`."""
    return event if _SDK_MARKS.isdisjoint(event) else _camel(event)


def _camel(value: Any) -> Any:
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        # Arguments and results are content: their keys must not be renamed.
        return {
            camel(key): member if key in _ARGUMENTS else _camel(member)
            for key, member in members.items()
            if member is not None
        }
    if isinstance(value, list):
        return [_camel(item) for item in cast("list[Any]", value)]
    return value


def _first_frame(model: str, id: str, prompt: int) -> bytes:
    usage = {"promptTokenCount": prompt}
    frame = {"usageMetadata": usage, "modelVersion": model, "responseId": id}
    return b"data: %s\n\n" % msgspec.json.encode(frame)


def _sign(parts: Sequence[Part], thought: str, seal: Seal) -> list[Part]:
    """Gemini signs the first call of a turn, or the end of a turn without calls."""
    first = next((part for part in parts if isinstance(part, ToolCall)), None)
    if first is None:
        return [Thinking(thought), *parts, Thinking(seal=seal)]
    signed = [msgspec.structs.replace(part, seal=seal) if part is first else part for part in parts]
    return [Thinking(thought), *signed]


_ACTION = "/models/{{model:.+}}:{{action:{}}}"
_FILE = ("name", "file.name")
_BATCH = ("name", "response.responsesFile", "metadata.output.responsesFile")
_OTHERS = (
    OtherEndpoint(
        name="embeddings",
        path=_ACTION.format("embedContent|batchEmbedContents"),
        model="path",
        within="requests",
    ),
    OtherEndpoint(name="images", path=_ACTION.format("predict"), model="path"),
    OtherEndpoint(
        name="batches",
        path=_ACTION.format("batchGenerateContent|asyncBatchEmbedContent"),
        model="path",
        names=_BATCH,
        paid_later=True,
    ),
    OtherEndpoint(name="batches", path="/batches", methods=("GET",), names=_BATCH, listed="operations"),
    OtherEndpoint(name="batches", path="/batches/{id}", methods=("GET", "DELETE"), names=_BATCH),
    OtherEndpoint(name="batches", path="/batches/{id}:cancel", names=_BATCH),
    OtherEndpoint(name="files", path="/files", methods=("POST",), before="/upload", names=_FILE),
    OtherEndpoint(name="files", path="/files", methods=("GET",), names=_FILE, listed="files"),
    OtherEndpoint(name="files", path="/files/{id}", methods=("GET", "DELETE"), names=_FILE),
    OtherEndpoint(name="files", path="/files/{id}:download", methods=("GET",), before="/download"),
)
ENDPOINTS = Endpoints(
    # A model's name may contain slashes (`openrouter/google/gemini-3-pro`). The verb follows the last colon.
    # google-genai 3.1 for Python calls `/v1`, all other clients call `/v1beta`. Both share the prefix with
    # the model lists of OpenAI and Anthropic, so the verb after the colon decides.
    roots=("/v1beta", "/v1", "/v1alpha"),
    answers=("/models/{model:.+}:{action:generateContent|streamGenerateContent}",),
    counts=("/models/{model:.+}:countTokens",),
    missing=("/models/{model:.+}:{action:[A-Za-z]+}",),
    others=_OTHERS,
    # An upload has a URL of its own, and says in headers which piece of the file it sends.
    passed_headers=("x-goog-upload-",),
    link_headers=("x-goog-upload-url", "x-goog-upload-control-url"),
    claims=_claims,
    reframes=_wants_array,
)
_GOOGLES = "publishers/google/models/{model:.+}"
# The paths of Google's clients in their mode for Vertex AI. With an API key they name no project.
_IN_VERTEX = [
    f"/{{version:v1|v1beta1}}/{place}{_GOOGLES}" for place in ("projects/{project}/locations/{location}/", "")
]
VERTEX_ENDPOINTS = Endpoints(
    roots=("",),
    answers=tuple(f"{path}:{{action:generateContent|streamGenerateContent}}" for path in _IN_VERTEX),
    counts=tuple(f"{path}:countTokens" for path in _IN_VERTEX),
    own=("/v1beta1/",),
    reframes=_wants_array,
)
# OAuth tokens of Google begin with `ya29.`.
AUTH = Auth(_KEY, ("ya29.",))
COUNTING = Counting(suffix=":countTokens", body=_wrapped, to_request=_unwrapped, member="totalTokens")
LISTING = ModelListFormat(
    path="/v1beta/models?pageSize=1000",
    member="models",
    name="name",
    prefix="models/",
    more="nextPageToken",
    answers=_answers,
    entry=_entry,
    page=lambda entries: {"models": entries},
    known="gemini-2.5-flash",
)
# Gemini does not need its thoughts back, and its CLI drops them, so a thought cannot carry a foreign seal.
# Many clients (opencode, pi, Google's SDK) drop the ids of calls.
REASONING = ReasoningReplay(seals=True, call_ids=False)
ADDRESS = BaseUrlRule(
    endpoint=r"/models(/[^/]+)?$", distinctive=False, version="/v1beta", own_version=_own_version
)
TOOLS = ToolForm(fits=_is_tool, read=read_tool)
SDK = SdkObjects(whole=_is_whole, on_wire=_on_wire)
SERVER = Server(
    call_ids="",
    id_header="",
    objects_in_bodies=True,
    whole_calls=True,
    overloaded=503,
    first_frame=_first_frame,
    retry_details=({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1s"},),
    sign=_sign,
)
