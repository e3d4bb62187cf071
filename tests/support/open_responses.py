"""The requirements of the Open Responses specification for a response object, as JSON Schema.

Written from the specification's text, not from its files. Every listed member is required.
"""

from typing import Any

import jsonschema_rs


def _object(**members: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(members), "properties": members}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


STRING, INTEGER, NUMBER, BOOLEAN = ({"type": name} for name in ("string", "integer", "number", "boolean"))
STATUS = {"enum": ["in_progress", "completed", "incomplete"]}

_text = _object(
    type={"const": "output_text"}, text=STRING, annotations={"type": "array"}, logprobs={"type": "array"}
)
_refusal = _object(type={"const": "refusal"}, refusal=STRING)
_message = _object(
    type={"const": "message"},
    id=STRING,
    status=STATUS,
    role={"const": "assistant"},
    content={"type": "array", "items": {"anyOf": [_text, _refusal]}},
)
_call = _object(
    type={"const": "function_call"}, id=STRING, call_id=STRING, name=STRING, arguments=STRING, status=STATUS
)
_reasoning = _object(type={"const": "reasoning"}, id=STRING, summary={"type": "array"})
_compaction = _object(type={"const": "compaction"}, id=STRING, encrypted_content=STRING)
ITEM = {"anyOf": [_message, _call, _reasoning, _compaction]}

_function = _object(
    type={"const": "function"},
    name=STRING,
    description=_or_null(STRING),
    parameters=_or_null({"type": "object"}),
    strict=_or_null(BOOLEAN),
)
USAGE = _object(
    input_tokens=INTEGER,
    output_tokens=INTEGER,
    total_tokens=INTEGER,
    input_tokens_details=_object(cached_tokens=INTEGER),
    output_tokens_details=_object(reasoning_tokens=INTEGER),
)
_error = _object(code=STRING, message=STRING)

RESPONSE = _object(
    id=STRING,
    object={"const": "response"},
    created_at=INTEGER,
    completed_at=_or_null(INTEGER),
    status={"enum": ["completed", "failed", "in_progress", "cancelled", "queued", "incomplete"]},
    incomplete_details=_or_null(_object(reason=STRING)),
    model=STRING,
    previous_response_id=_or_null(STRING),
    instructions=_or_null(STRING),
    output={"type": "array", "items": ITEM},
    error=_or_null(_error),
    tools={"type": "array", "items": _function},
    tool_choice={"anyOf": [{"enum": ["none", "auto", "required"]}, _object(type=STRING)]},
    truncation={"enum": ["auto", "disabled"]},
    parallel_tool_calls=BOOLEAN,
    text=_object(format=_object(type=STRING)),
    top_p=NUMBER,
    presence_penalty=NUMBER,
    frequency_penalty=NUMBER,
    top_logprobs=INTEGER,
    temperature=NUMBER,
    reasoning=_or_null(_object(effort=_or_null(STRING), summary=_or_null(STRING))),
    user=_or_null(STRING),
    usage=_or_null(USAGE),
    max_output_tokens=_or_null(INTEGER),
    max_tool_calls=_or_null(INTEGER),
    store=BOOLEAN,
    background=BOOLEAN,
    service_tier=STRING,
    metadata={"type": "object"},
    safety_identifier=_or_null(STRING),
    prompt_cache_key=_or_null(STRING),
)

_judge = jsonschema_rs.validator_for(RESPONSE)


def missing(response: dict[str, Any]) -> list[str]:
    """Every violation of the specification in `response`."""
    return [
        f"{'.'.join(map(str, error.instance_path))}: {error.message}"
        for error in _judge.iter_errors(response)
    ]
