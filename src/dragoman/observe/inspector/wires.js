// Reads the content of a frame, for each protocol. The shape of a frame shows its protocol.
// Each reader returns a list of {kind, text, …}. Kinds: text, thinking, call, arguments, usage, stop, error,
// opaque (sealed reasoning) and mark (a frame without content, such as a start).

import { count } from "./format.js";

const mark = (text) => ({ kind: "mark", text });
const error = (body) => ({ kind: "error", text: body?.message ?? JSON.stringify(body) });
const orMark = (parts, otherwise) => (parts.length ? parts : [mark(otherwise)]);
const textPart = (kind, text) => (text ? [{ kind, text }] : []);

function usage(input, output) {
  const counts = [];
  if (input) counts.push(`${count(input)} in`);
  if (output) counts.push(`${count(output)} out`);
  return counts.length ? [{ kind: "usage", text: counts.join(", ") }] : [];
}

function callParts(key, id, name, args) {
  const parts = [{ kind: "call", key, id, name, text: name || "" }];
  if (args) parts.push({ kind: "arguments", key, text: typeof args === "string" ? args : JSON.stringify(args) });
  return parts;
}

// Anthropic

function block(key, part) {
  switch (part.type) {
    case "tool_use":
    case "server_tool_use":
      return callParts(key, part.id, part.name, Object.keys(part.input ?? {}).length ? part.input : "");
    case "text":
      return textPart("text", part.text);
    case "thinking":
      return textPart("thinking", part.thinking);
    default:
      return [{ kind: "opaque", text: part.type }];
  }
}

function delta(key, part) {
  switch (part.type) {
    case "text_delta":
      return textPart("text", part.text);
    case "thinking_delta":
      return textPart("thinking", part.thinking);
    case "input_json_delta":
      return part.partial_json ? [{ kind: "arguments", key, text: part.partial_json }] : [];
    default:
      return [{ kind: "opaque", text: part.type }];
  }
}

const ANTHROPIC = {
  message_start: (j) => [mark(j.type), ...usage(j.message?.usage?.input_tokens)],
  content_block_start: (j) => orMark(block(j.index, j.content_block ?? {}), `${j.content_block?.type} begins`),
  content_block_delta: (j) => delta(j.index, j.delta ?? {}),
  content_block_stop: (j) => [mark(j.type)],
  message_delta: (j) => [
    ...(j.delta?.stop_reason ? [{ kind: "stop", text: j.delta.stop_reason }] : []),
    ...usage(j.usage?.input_tokens, j.usage?.output_tokens),
  ],
  message_stop: (j) => [mark(j.type)],
  ping: (j) => [mark(j.type)],
  error: (j) => [error(j.error ?? j)],
  message: (j) => [
    ...(j.content ?? []).flatMap((part, index) => block(index, part)),
    ...(j.stop_reason ? [{ kind: "stop", text: j.stop_reason }] : []),
    ...usage(j.usage?.input_tokens, j.usage?.output_tokens),
  ],
};

// OpenAI Responses

function item(part) {
  switch (part.type) {
    case "function_call":
    case "custom_tool_call":
      return callParts(part.id ?? part.call_id, part.call_id, part.name, part.arguments ?? part.input);
    case "message":
      return (part.content ?? []).flatMap((c) => textPart("text", c.text ?? c.refusal));
    case "reasoning":
      return [
        ...(part.summary ?? []).flatMap((s) => textPart("thinking", s.text)),
        ...(part.encrypted_content ? [{ kind: "opaque", text: "encrypted reasoning" }] : []),
      ];
    default:
      return [mark(part.type)];
  }
}

function ended(j) {
  const answer = j.response ?? j;
  return [
    ...(answer.error ? [error(answer.error)] : []),
    { kind: "stop", text: answer.incomplete_details?.reason ?? answer.status ?? j.type },
    ...usage(answer.usage?.input_tokens, answer.usage?.output_tokens),
  ];
}

const RESPONSES = {
  "response.output_text.delta": (j) => textPart("text", j.delta),
  "response.refusal.delta": (j) => textPart("text", j.delta),
  "response.reasoning_summary_text.delta": (j) => textPart("thinking", j.delta),
  "response.reasoning_text.delta": (j) => textPart("thinking", j.delta),
  "response.function_call_arguments.delta": (j) => [{ kind: "arguments", key: j.item_id, text: j.delta }],
  "response.custom_tool_call_input.delta": (j) => [{ kind: "arguments", key: j.item_id, text: j.delta }],
  "response.output_item.added": (j) => (/call$/.test(j.item?.type) ? item({ ...j.item, arguments: "", input: "" }) : [mark(j.type)]),
  "response.completed": ended,
  "response.incomplete": ended,
  "response.failed": ended,
};

// OpenAI Chat

function chat(j) {
  const choice = j.choices[0] ?? {};
  const part = choice.delta ?? choice.message ?? {};
  return orMark([
    ...textPart("thinking", part.reasoning_content ?? part.reasoning),
    ...textPart("text", part.content || part.refusal),
    ...(part.tool_calls ?? []).flatMap((call, index) => {
      // Ollama sends no index.
      const key = call.index ?? index;
      const { name, arguments: args } = call.function ?? {};
      if (call.id || name) return callParts(key, call.id, name, args);
      return args ? [{ kind: "arguments", key, text: args }] : [];
    }),
    ...(choice.finish_reason ? [{ kind: "stop", text: choice.finish_reason }] : []),
    ...usage(j.usage?.prompt_tokens, j.usage?.completion_tokens),
    ...(j.error ? [error(j.error)] : []),
  ], part.role ? `${part.role} begins` : "empty");
}

// Gemini: calls arrive whole, and only their order distinguishes them.

function gemini(j, state) {
  const candidate = j.candidates?.[0] ?? {};
  const parts = (candidate.content?.parts ?? []).flatMap((part) => {
    if (part.functionCall) {
      state.calls = (state.calls ?? 0) + 1;
      return callParts(`call ${state.calls}`, part.functionCall.id, part.functionCall.name, part.functionCall.args);
    }
    const words = textPart(part.thought ? "thinking" : "text", part.text);
    return part.thoughtSignature ? [...words, { kind: "opaque", text: "thought signature" }] : words;
  });
  if (candidate.finishReason) parts.push({ kind: "stop", text: candidate.finishReason });
  parts.push(...usage(j.usageMetadata?.promptTokenCount, j.usageMetadata?.candidatesTokenCount));
  return parts;
}

// Cursor: a call is announced, then sent whole, with its arguments in a member named after its tool.

const CURSOR = ["text", "thinking", "partial_tool_call", "tool_call_v2", "finish_reason", "usage"];

function cursor(j) {
  const complete = j.tool_call_v2;
  const announced = j.partial_tool_call;
  return [
    ...textPart("thinking", j.thinking?.text),
    ...textPart("text", j.text),
    ...(announced ? callParts(announced.tool_call_id, announced.tool_call_id, announced.name, "") : []),
    ...(complete ? callParts(complete.tool_call_id, complete.tool_call_id, complete.name, cursorArguments(complete)) : []),
    ...(j.finish_reason ? [{ kind: "stop", text: j.finish_reason }] : []),
    ...usage(j.usage?.prompt_tokens, j.usage?.completion_tokens),
  ];
}

function cursorArguments(call) {
  const [, params] = Object.entries(call).find(([name]) => name.endsWith("_params")) ?? [];
  return params?.tools?.[0]?.parameters ?? params ?? call.raw_args ?? "";
}

/** The content of one frame; the caller keeps `state` from frame to frame. */
export function frameContent(j, state) {
  if (j === null || typeof j !== "object") return [mark(String(j))];
  if (Array.isArray(j.choices)) return chat(j);
  if (j.candidates || j.usageMetadata) return gemini(j, state);
  if (ANTHROPIC[j.type]) return ANTHROPIC[j.type](j);
  if (RESPONSES[j.type]) return RESPONSES[j.type](j);
  if (j.object === "response") return [...(j.output ?? []).flatMap(item), ...ended(j)];
  if (j.error) return [error(j.error)];
  if (!j.type && CURSOR.some((name) => name in j)) return cursor(j);
  return [mark(j.type ?? "frame")];
}
