"""Request bodies of real agents (clients.md section 2), reduced to their differences.

Each is a conversation after some turns. `AGENTS[name]` has the protocol, the path and the body. A protocol
that none of these agents speaks is tested with their conversations, translated.
"""

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@dataclass(frozen=True, slots=True)
class AgentRequest:
    protocol: str
    path: str
    body: Json


def _schema(required: list[str], **properties: Json) -> Json:
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


_BASH = _schema(
    ["command"],
    command={"type": "string", "description": "The command to execute", "minLength": 1},
    timeout={"type": "number", "exclusiveMinimum": 0, "maximum": 600000},
    mode={"type": "string", "enum": ["foreground", "background"], "default": "foreground"},
)
_READ = _schema(
    ["file_path"],
    file_path={"type": "string", "description": "Absolute path"},
    range={"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
)
_TODOS = _schema(
    ["todos"],
    todos={
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "content": {"type": "string"},
                "status": {"oneOf": [{"const": "pending"}, {"const": "completed"}]},
            },
            "required": ["content", "status"],
        },
    },
)
_GRAMMAR = 'start: begin_patch hunk+ end_patch\nbegin_patch: "*** Begin Patch" LF\n'
_PATCH = '*** Begin Patch\n*** Update File: a.py\n@@\n-x = "1"\n+x = 2\n*** End Patch\n'
_MARK = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}

CLAUDE_CODE: Json = {
    "model": "claude-opus-4-8",
    "max_tokens": 64000,
    "stream": True,
    "system": [
        {
            "type": "text",
            "text": "x-anthropic-billing-header: cc_version=2.1.325.b55; cc_entrypoint=sdk-cli;",
        },
        {"type": "text", "text": "You are Claude Code.", **_MARK},
        {"type": "text", "text": "Environment: linux, 東京 😀", **_MARK},
    ],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "<system-reminder>Today is Monday.</system-reminder>"},
                {"type": "text", "text": "What is in this picture, and who uses it?"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
            ],
        },
        {"role": "system", "content": "The user has opened a.py.", "output_config": {"effort": "high"}},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Look first.", "signature": "EqMBCkYIBxgCKkBvcGFxdWU="},
                {"type": "text", "text": "Let me look."},
                {"type": "tool_use", "id": "toolu_01A", "name": "Bash", "input": {"command": "rg -n 'x' ."}},
                {
                    "type": "tool_use",
                    "id": "toolu_01B",
                    "name": "Read",
                    "input": {"file_path": "/w/a.py", "range": [1, 20]},
                },
                {
                    "type": "tool_use",
                    "id": "toolu_01C",
                    "name": "mcp__github__get_issue",
                    "input": {"number": 12345678901234567890},
                },
            ],
        },
        {
            "role": "user",
            "content": [
                # Not in the order of the calls.
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_01B",
                    "content": [
                        {"type": "text", "text": "x = 1"},
                        {
                            "type": "image",
                            "source": {"type": "base64", "media_type": "image/png", "data": PNG},
                        },
                    ],
                },
                {"type": "tool_result", "tool_use_id": "toolu_01A", "content": "a.py:1:x", "is_error": False},
                {"type": "tool_result", "tool_use_id": "toolu_01C", "content": "404", "is_error": True},
                {"type": "text", "text": "Go on, please.", **_MARK},
            ],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "It is a dot."}]},
        {"role": "user", "content": "Thanks. Now change it."},
    ],
    "tools": [
        {"name": "Bash", "description": "Runs a command", "input_schema": _BASH},
        {"name": "Read", "description": "Reads a file", "input_schema": _READ},
        {"name": "TodoWrite", "description": "Keeps a list", "input_schema": _TODOS},
        {
            "name": "mcp__github__get_issue",
            "description": "An issue",
            "input_schema": {"type": "object", "properties": {"number": {"type": "integer"}}},
        },
        {"name": "Later", "description": "?", "input_schema": {"type": "object"}, "defer_loading": True},
    ],
    "tool_choice": {"type": "auto"},
    "thinking": {"type": "adaptive", "display": "omitted"},
    "output_config": {"effort": "medium"},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "metadata": {"user_id": '{"device_id": "d0d0", "account_uuid": "", "session_id": "5e55"}'},
}

CODEX: Json = {
    "model": "gpt-5.5",
    "input": [
        {
            "type": "message",
            "id": "msg_1",
            "role": "developer",
            "content": [{"type": "input_text", "text": "You are Codex."}],
        },
        {
            "type": "message",
            "id": "msg_2",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "Fix this"},
                {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "high"},
            ],
        },
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "Hm."}],
            "content": None,
            "encrypted_content": "gAAAAABopaque",
        },
        {
            "type": "message",
            "id": "msg_3",
            "role": "assistant",
            "phase": "commentary",
            "content": [{"type": "output_text", "text": "Patching."}],
        },
        {
            "type": "custom_tool_call",
            "id": "ctc_1",
            "call_id": "call_patch",
            "name": "apply_patch",
            "input": _PATCH,
        },
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_exec",
            "name": "exec_command",
            "arguments": '{"cmd": ["ls", "-l"], "yield_time_ms": 1000.0}',
        },
        {
            "type": "function_call",
            "id": "fc_2",
            "call_id": "call_spawn",
            "name": "spawn",
            "namespace": "multi_agent_v1",
            "arguments": '{"task":"test"}',
        },
        {"type": "custom_tool_call_output", "id": "ctco_1", "call_id": "call_patch", "output": "Done!"},
        {
            "type": "function_call_output",
            "id": "fco_1",
            "call_id": "call_exec",
            "output": [
                {"type": "input_text", "text": "total 0"},
                {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "high"},
            ],
        },
        {"type": "function_call_output", "id": "fco_2", "call_id": "call_spawn", "output": "agent-1"},
        {
            "type": "message",
            "id": "msg_4",
            "role": "assistant",
            "phase": "final_answer",
            "content": [{"type": "output_text", "text": "Fixed."}],
        },
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Run the tests."}]},
    ],
    "tools": [
        {
            "type": "function",
            "name": "exec_command",
            "description": "Runs a command",
            "strict": False,
            "parameters": _schema(
                ["cmd"],
                cmd={"type": "array", "items": {"type": "string"}},
                yield_time_ms={"type": "number"},
            ),
        },
        {
            "type": "custom",
            "name": "apply_patch",
            "description": "Edits files. Do not wrap the patch in JSON.",
            "format": {"type": "grammar", "syntax": "lark", "definition": _GRAMMAR},
        },
        {
            "type": "namespace",
            "name": "multi_agent_v1",
            "description": "Agents.",
            "tools": [
                {
                    "type": "function",
                    "name": "spawn",
                    "description": "A new agent",
                    "strict": False,
                    "parameters": _schema(["task"], task={"type": "string"}),
                },
                {
                    "type": "function",
                    "name": "wait",
                    "description": "Waits for it",
                    "strict": False,
                    "parameters": {"type": "object", "properties": {}},
                },
            ],
        },
        {"type": "web_search", "external_web_access": True},
    ],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "reasoning": {"effort": "high", "summary": "auto", "context": "all_turns"},
    "text": {
        "verbosity": "low",
        "format": {
            "type": "json_schema",
            "name": "codex_output_schema",
            "strict": True,
            "schema": _schema(["done"], done={"type": "boolean"}),
        },
    },
    "service_tier": "priority",
    "store": False,
    "stream": True,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "session",
    "client_metadata": {"x": "y"},
}

CODEX_CODE_MODE: Json = {
    "model": "gpt-6.1-sol",
    "input": [
        {
            "type": "additional_tools",
            "id": "at_1",
            "role": "developer",
            "tools": [
                {
                    "type": "namespace",
                    "name": "functions",
                    "description": "Yours.",
                    "tools": [
                        {
                            "type": "custom",
                            "name": "exec",
                            "description": "Runs JavaScript",
                            "format": {
                                "type": "grammar",
                                "syntax": "lark",
                                "definition": "start: /.+/s",
                            },
                        },
                        {
                            "type": "function",
                            "name": "wait",
                            "description": "Waits",
                            "strict": False,
                            "parameters": {"type": "object", "properties": {"ms": {"type": "integer"}}},
                        },
                    ],
                },
                {
                    "type": "namespace",
                    "name": "clock",
                    "description": "Time.",
                    "tools": [
                        {
                            "type": "function",
                            "name": "wait",
                            "description": "Sleeps",
                            "strict": False,
                            "parameters": {"type": "object", "properties": {"s": {"type": "integer"}}},
                        }
                    ],
                },
            ],
        },
        {"role": "developer", "content": "You are Codex."},
        {"role": "user", "content": "Go"},
        {
            "type": "custom_tool_call",
            "call_id": "c1",
            "name": "exec",
            "namespace": "functions",
            "input": "text('h\\u00ed \"x\"')\n",
        },
        {
            "type": "custom_tool_call_output",
            "call_id": "c1",
            "output": [{"type": "input_text", "text": "hí"}],
        },
        {
            "type": "function_call",
            "call_id": "c2",
            "name": "wait",
            "namespace": "clock",
            "arguments": '{"s":1}',
        },
        {"type": "function_call_output", "call_id": "c2", "output": "ok"},
    ],
    "tool_choice": "auto",
    "parallel_tool_calls": False,
    "store": False,
    "stream": True,
}

SHELL_AGENT: Json = {
    "model": "gpt-5.5",
    "instructions": "Keep the workspace tidy.",
    "max_output_tokens": 4096,
    "input": [
        {"role": "user", "content": "Tidy up"},
        {
            "type": "shell_call",
            "call_id": "call_sh",
            "action": {"commands": ["ls", "pwd"], "timeout_ms": 1000},
            "status": "completed",
        },
        {
            "type": "shell_call_output",
            "call_id": "call_sh",
            "max_output_length": 4096,
            "output": [
                {"stdout": "a.py\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
                {"stdout": "", "stderr": "no pwd\n", "outcome": {"type": "exit", "exit_code": 127}},
            ],
        },
        {
            "type": "apply_patch_call",
            "call_id": "call_ap",
            "operation": {"type": "update_file", "path": "a.py", "diff": "@@\n-x\n+y\n"},
            "status": "completed",
        },
        {
            "type": "apply_patch_call_output",
            "call_id": "call_ap",
            "status": "failed",
            "output": "does not apply",
        },
    ],
    "tools": [{"type": "shell", "environment": {"type": "local"}}, {"type": "apply_patch"}],
    "tool_choice": {"type": "shell"},
}

GEMINI_CLI: Json = {
    "systemInstruction": {"role": "user", "parts": [{"text": "You are Gemini CLI."}, {"text": "Be brief."}]},
    "contents": [
        {
            "role": "user",
            "parts": [
                {"text": "What is this?"},
                {"inlineData": {"mimeType": "image/png", "data": PNG}},
            ],
        },
        {
            "role": "model",
            "parts": [
                {"text": "Reading two files.", "thoughtSignature": "c2lnbmF0dXJlLTE="},
                {
                    "functionCall": {"id": "rf-1", "name": "read_file", "args": {"path": "a.py"}},
                    "thoughtSignature": "c2lnbmF0dXJlLTI=",
                },
                {"functionCall": {"id": "rf-2", "name": "read_file", "args": {"path": "b.py", "limit": 10}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "rf-1", "name": "read_file", "response": {"output": "x = 1"}}},
                {
                    "functionResponse": {
                        "id": "rf-2",
                        "name": "read_file",
                        "response": {"error": "no file"},
                    }
                },
            ],
        },
        {"role": "model", "parts": [{"text": "a.py has x."}]},
        {"role": "user", "parts": [{"text": "And c.py?"}]},
    ],
    "tools": [
        {
            "functionDeclarations": [
                {
                    "name": "read_file",
                    "description": "Reads a file",
                    "parametersJsonSchema": {
                        "type": "object",
                        "properties": {
                            "path": {"type": "string", "minLength": 1},
                            "limit": {"type": "integer", "minimum": 1},
                        },
                        "required": ["path"],
                    },
                },
                {
                    "name": "list_directory",
                    "description": "Lists a folder",
                    "parameters": {"type": "OBJECT", "properties": {"dir": {"type": "STRING"}}},
                },
            ]
        }
    ],
    "toolConfig": {
        "functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["read_file", "list_directory"]}
    },
    "generationConfig": {
        "temperature": 1,
        "topP": 0.95,
        "maxOutputTokens": 8192,
        "stopSequences": ["<stop>"],
        "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "HIGH"},
    },
}

GOOGLE_GENAI: Json = {
    # google-genai 3.1.0 mixes both spellings, and gives its calls no ids.
    "contents": [
        {"role": "user", "parts": [{"text": "Weather in Paris and Rome?"}]},
        {
            "role": "model",
            "parts": [
                {"text": "Both at once.", "thought": True},
                {
                    "functionCall": {"name": "get_weather", "args": {"city": "Paris"}},
                    "thoughtSignature": "c2lnbmF0dXJlLTM=",
                },
                {"functionCall": {"name": "get_weather", "args": {"city": "Rome"}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "get_weather", "response": {"result": "rain"}}},
                {"functionResponse": {"name": "get_weather", "response": {"result": "sun"}}},
            ],
        },
    ],
    "tools": [
        {
            "functionDeclarations": [
                {
                    "name": "get_weather",
                    "description": "Weather",
                    "parameters_json_schema": {
                        "type": "object",
                        "properties": {"city": {"type": "string"}},
                        "required": ["city"],
                    },
                }
            ]
        }
    ],
    "generationConfig": {
        "thinkingConfig": {"include_thoughts": True, "thinking_budget": 2048},
        "response_mime_type": "application/json",
        "response_json_schema": {"type": "object", "properties": {"answer": {"type": "string"}}},
        "candidateCount": 1,
    },
}

OPENCODE: Json = {
    "model": "mock",
    "max_tokens": 32000,
    "temperature": 0.5,
    "messages": [
        {"role": "system", "content": "You are opencode."},
        {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "List the files"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
            ],
        },
        {
            "role": "assistant",
            "content": "",
            "reasoning_content": "I should list.",
            "tool_calls": [
                {
                    "id": "call_00_a",
                    "type": "function",
                    "function": {"name": "bash", "arguments": '{"command": "ls",  "timeout": 1e3}'},
                },
                {
                    "id": "call_01_b",
                    "type": "function",
                    "function": {"name": "read", "arguments": '{"file_path":"/w/a.py"}'},
                },
            ],
        },
        {"role": "tool", "tool_call_id": "call_00_a", "content": "a.py"},
        {"role": "tool", "tool_call_id": "call_01_b", "content": [{"type": "text", "text": "x = 1"}]},
        {"role": "assistant", "content": "There is one."},
        {"role": "user", "content": "Which?"},
    ],
    "tools": [
        {
            "type": "function",
            "function": {"name": "bash", "description": "Runs a command", "parameters": _BASH},
        },
        {
            "type": "function",
            "function": {"name": "read", "description": "Reads", "parameters": _READ, "strict": False},
        },
    ],
    "tool_choice": {"type": "function", "function": {"name": "read"}},
    "reasoning_effort": "low",
    "stream": True,
    "stream_options": {"include_usage": True},
}

PI: Json = {
    "model": "mock",
    "max_completion_tokens": 16384,
    "messages": [
        {"role": "developer", "content": "You are pi."},
        {"role": "user", "content": [{"type": "text", "text": "Patch it"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "call_p", "type": "custom", "custom": {"name": "ApplyPatch", "input": _PATCH}},
            ],
        },
        {"role": "tool", "tool_call_id": "call_p", "content": "ok"},
    ],
    "tools": [
        {
            "type": "custom",
            "custom": {
                "name": "ApplyPatch",
                "description": "Edits files",
                "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": _GRAMMAR}},
            },
        }
    ],
    "parallel_tool_calls": False,
    "reasoning_effort": "medium",
    "store": False,
    "stream": True,
    "stream_options": {"include_usage": True},
}

PLAIN_CHAT: Json = {
    "model": "gpt-4o",
    "messages": [
        {"role": "system", "content": "You pair-program."},
        {"role": "user", "content": "Say hi as JSON"},
        {"role": "assistant", "content": '{"hi": true}'},
        {"role": "user", "content": "Again"},
    ],
    "temperature": 0,
    "top_p": 1,
    "stop": ["</answer>", "\n\n\n"],
    "response_format": {"type": "json_object"},
    "user": "user-1",
    "stream": True,
    "stream_options": {"include_usage": True},
}

_GEMINI_PATH = "/v1beta/models/gemini-3-pro-preview:streamGenerateContent?alt=sse"

AGENTS: dict[str, AgentRequest] = {
    "claude-code": AgentRequest("anthropic", "/v1/messages?beta=true", CLAUDE_CODE),
    "codex": AgentRequest("openai-responses", "/v1/responses", CODEX),
    "codex-code-mode": AgentRequest("openai-responses", "/v1/responses", CODEX_CODE_MODE),
    "shell-agent": AgentRequest("openai-responses", "/v1/responses", SHELL_AGENT),
    "gemini-cli": AgentRequest("gemini", _GEMINI_PATH, GEMINI_CLI),
    "google-genai": AgentRequest("gemini", "/v1/models/gemini-3-pro:generateContent", GOOGLE_GENAI),
    "opencode": AgentRequest("openai-chat", "/v1/chat/completions", OPENCODE),
    "pi": AgentRequest("openai-chat", "/v1/chat/completions", PI),
    "plain-chat": AgentRequest("openai-chat", "/v1/chat/completions", PLAIN_CHAT),
}
