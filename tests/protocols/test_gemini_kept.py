"""Between Gemini and Gemini each chunk comes out as it came, with every member. Sources reach all clients."""

import json
from typing import Any

import pytest
from support.exchanges import exchange, run
from support.sample_streams import TOOLS

from dragoman.conform import laws, neutral

P = "gemini"
USAGE = {
    "promptTokenCount": 9,
    "candidatesTokenCount": 4,
    "thoughtsTokenCount": 3,
    "totalTokenCount": 16,
    "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 9}],
    "serviceTier": "standard",
}
TRAFFIC = {"trafficType": "ON_DEMAND"}
READ = {"name": "read_file", "args": {"path": "a"}}
GROUNDING = {
    "webSearchQueries": ["q"],
    "searchEntryPoint": {"renderedContent": "<div/>"},
    "groundingChunks": [
        {"web": {"uri": "https://a.example", "title": "A"}},
        {"web": {"uri": "https://b.example", "title": "B"}},
        {"retrievedContext": {"uri": "https://c.example", "title": "C"}},
    ],
    "groundingSupports": [
        {"segment": {"endIndex": 6, "text": "Größe"[:4]}, "groundingChunkIndices": [0]},
        {"segment": {"startIndex": 9, "endIndex": 11, "text": "is"}, "groundingChunkIndices": [0, 1]},
    ],
}


def chunk(*parts: Any, finish: str | None = None, usage: Any = None, **candidate: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0, **candidate}
    if finish:
        found["finishReason"] = finish
    value = {"candidates": [found], "responseId": "r1", "modelVersion": "g", "createTime": "2026-01-01"}
    return value | ({"usageMetadata": usage} if usage else {})


def sent(*chunks: Any) -> list[bytes]:
    return [b"data: %s\r\n\r\n" % json.dumps(one).encode() for one in chunks]


def got(*chunks: Any, upstream: str = P, **options: Any) -> list[Any]:
    stream = run(exchange(upstream, P, TOOLS, **options), sent(*chunks))
    assert laws.check(P, stream, stream=True) == []
    return [json.loads(frame.removeprefix(b"data: ")) for frame in stream.split(b"\n\n") if frame]


STOP = chunk({"text": ""}, finish="STOP", usage=USAGE)
STREAMS: dict[str, list[Any]] = {
    "several parts": [
        chunk({"text": "Hm", "thought": True}, {"text": "One, two. "}, {"text": "Three, four. "}),
        STOP,
    ],
    "a signature on text": [
        chunk({"text": "One, two. "}),
        chunk({"text": "Three, four. ", "thoughtSignature": "c2ln"}),
        chunk({"text": "Five, six. "}),
        STOP,
    ],
    "a signature on empty text": [
        chunk({"text": "One, two. "}),
        chunk({"text": "", "thoughtSignature": "c2ln"}, finish="STOP", usage=USAGE),
    ],
    "a signature on a thought": [
        chunk({"text": "Hm", "thought": True, "thoughtSignature": "c2ln"}),
        chunk({"text": "One, two. "}),
        STOP,
    ],
    "a thought without text": [chunk({"text": "", "thought": True}), chunk({"text": "One, two. "}), STOP],
    "counts on every chunk": [
        chunk({"text": "One, two. "}, usage=TRAFFIC),
        chunk({"text": "Three, four. "}, usage={"promptTokenCount": 9, "totalTokenCount": 9}),
        chunk({"text": "Five, six. "}, usage=TRAFFIC),
        STOP,
    ],
    "members of the candidate": [
        chunk(
            {"text": "One, two. "}, safetyRatings=[{"category": "HARM", "probability": "LOW"}], tokenCount=3
        ),
        chunk(
            {"text": "Three, four. "},
            finish="STOP",
            finishMessage="done",
            avgLogprobs=-0.1234,
            logprobsResult={"chosenCandidates": [{"token": "b", "logProbability": -0.5}]},
            citationMetadata={"citationSources": [{"uri": "https://x", "license": "MIT", "endIndex": 2}]},
            groundingMetadata=GROUNDING,
            usage=USAGE,
        ),
    ],
    "calls": [
        chunk({"functionCall": {"id": "a", **READ, "x": 1}, "thoughtSignature": "c2ln"}),
        chunk({"functionCall": {"id": "b", **READ}}, {"functionCall": {"id": "c", **READ}}),
        STOP,
    ],
    "calls without ids": [chunk({"functionCall": READ}), STOP],
    "a call in the last chunk": [chunk({"functionCall": {"name": "list_dir", "args": {}}}, finish="STOP")],
    "parts of Gemini": [
        chunk(
            {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "c2ln"},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
            {"toolCall": {"id": "t", "toolType": "GOOGLE_SEARCH", "args": {}}},
            {"toolResponse": {"id": "t", "response": {}}},
            {"hologram": {"x": 1}, "thought": False},
        ),
        STOP,
    ],
    "media": [
        chunk(
            {
                "inlineData": {"mimeType": "image/png", "data": "aGk=", "displayName": "p"},
                "thought": True,
                "thoughtSignature": "c2ln",
            }
        ),
        STOP,
    ],
    "candidates": [
        chunk({"text": "One, two. "}) | {"promptFeedback": {"safetyRatings": []}},
        chunk({"text": "Three, four. "}, index=1),
        chunk({"text": "Five, six. "}, finish="STOP"),
        chunk({"text": "Seven. "}, index=1, finish="STOP", usage=USAGE),
    ],
    "candidates in one chunk": [
        {
            "candidates": [
                {"content": {"role": "model", "parts": [{"text": "One, two. "}]}, "finishReason": "STOP"},
                {
                    "content": {"role": "model", "parts": [{"text": "Three, four. "}]},
                    "finishReason": "STOP",
                    "index": 1,
                },
            ],
            "responseId": "r1",
            "modelVersion": "g",
        }
    ],
    "null members": [
        chunk({"text": "One, two. ", "videoMetadata": None}, finishMessage=None) | {"promptFeedback": None},
        STOP,
    ],
    "no ids": [
        {"candidates": [{"content": {"parts": [{"text": "One, two. "}]}}]},
        {"candidates": [{"finishReason": "STOP"}]},
    ],
    "a blocked prompt": [
        {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 3}}
    ],
}
SEVERAL = {name for name in STREAMS if name.startswith("candidates")}


@pytest.mark.parametrize("name", STREAMS)
def test_each_chunk_comes_out_as_it_came(name: str) -> None:
    stream = run(exchange(P, P, TOOLS), sent(*STREAMS[name]))
    frames = [json.loads(frame.removeprefix(b"data: ")) for frame in stream.split(b"\n\n") if frame]
    assert frames == STREAMS[name]
    if name not in SEVERAL:
        assert laws.check(P, stream, stream=True) == []


@pytest.mark.parametrize("name", STREAMS)
def test_a_body_comes_out_as_it_came(name: str) -> None:
    for one in STREAMS[name]:
        if one.get("candidates", [{}])[0].get("index"):
            continue
        body = json.loads(json.dumps(one))
        for candidate in body.get("candidates", ()):
            candidate["finishReason"] = "STOP"
        result = run(exchange(P, P, TOOLS, stream=False), [json.dumps(body).encode()])
        assert json.loads(result) == body


def test_numbers_keep_their_digits() -> None:
    data = b'data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"n": 1.10}}}]},'
    data += b'"finishReason":"STOP","avgLogprobs":1.230}],"big":1000000000000000000000000000000}\n\n'
    stream = run(exchange(P, P), [data])
    for text in (b'{"n": 1.10}', b'"avgLogprobs":1.230', b'"big":1000000000000000000000000000000}'):
        assert text in stream


def test_streamed_arguments_are_one_call_with_its_members() -> None:
    begin = {"name": "read_file", "id": "a", "willContinue": True, "x": 1}
    piece = {"jsonPath": "$.path", "stringValue": "a"}
    frames = got(
        chunk({"functionCall": begin}),
        chunk({"functionCall": {"partialArgs": [piece], "willContinue": True, "y": 2}}),
        chunk({"functionCall": {}}),
        STOP,
    )
    parts = [part for frame in frames for part in frame["candidates"][0]["content"]["parts"]]
    assert parts == [{"functionCall": {"id": "a", **READ, "x": 1, "y": 2}}, {"text": ""}]


def test_a_finish_reason_before_the_end_goes_into_the_last_chunk() -> None:
    usage = {"usageMetadata": USAGE, "responseId": "r1", "modelVersion": "g"}
    frames = got(chunk({"text": "One, two. "}, finish="MAX_TOKENS", finishMessage="m"), usage)
    assert [frame["candidates"][0].get("finishReason") for frame in frames] == [None, "MAX_TOKENS"]
    assert frames[0]["candidates"][0]["finishMessage"] == "m"
    assert frames[1]["usageMetadata"] == USAGE


def test_what_a_strict_client_would_refuse_is_mended() -> None:
    first = chunk({"text": "One, two. ", "thoughtSignature": "no base64!"}, usage={"promptTokenCount": None})
    frames = got(
        first, chunk({"text": "Three, four. "}, usage=USAGE) | {"responseId": "r2"}, chunk(finish="STOP")
    )
    assert {frame["responseId"] for frame in frames} == {"r1"}


def test_an_error_keeps_its_details() -> None:
    error = {
        "code": 429,
        "message": "slow",
        "status": "RESOURCE_EXHAUSTED",
        "details": [{"retryDelay": "1s"}],
    }
    assert got(chunk({"text": "One, two. "}), {"error": error}) == [
        chunk({"text": "One, two. "}),
        {"error": error},
    ]


@pytest.mark.parametrize("client", ["anthropic", "openai-chat", "openai-responses"])
@pytest.mark.parametrize("asked", [True, False], ids=["stream", "whole"])
def test_sources_reach_other_clients(client: str, asked: bool) -> None:
    """The signature of the text comes before its sources."""
    chunks = [
        chunk({"text": "Größe "}),
        chunk({"text": "is", "thoughtSignature": "c2ln"}),
        chunk({"text": "", "thoughtSignature": "c2ln"}, finish="STOP", groundingMetadata=GROUNDING),
    ]
    data = run(exchange(P, client, stream=asked), sent(*chunks))
    assert laws.check(client, data, stream=asked) == []
    for source in (b"https://a.example", b"https://b.example", b"https://c.example"):
        assert source in data
    assert neutral.reduce(client, data, stream=asked)["text"] == "Größe is"


def test_places_of_sources_are_in_characters() -> None:
    text = chunk({"text": "Größe "}), chunk({"text": "is"}, finish="STOP", groundingMetadata=GROUNDING)
    body = json.loads(run(exchange(P, "openai-chat", stream=False), sent(*text)))
    notes = [note["url_citation"] for note in body["choices"][0]["message"]["annotations"]]
    assert [(note["url"][8], note["start_index"], note["end_index"]) for note in notes] == [
        ("a", 0, 4),
        ("a", 7, 9),
        ("b", 7, 9),
        ("c", 0, 0),
    ]
