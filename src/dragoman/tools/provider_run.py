"""Calls that a provider runs itself, and shows in its answer as if somebody else should.

A client that did not declare such a tool could only fail at it, so the call is left out, with a receipt.
Protocols have items of their own for these calls (`server_tool_use`, `web_search_call`, `executableCode`).
This is about those that look like ordinary calls.
"""

from __future__ import annotations

from ..model.messages import RUN_BY_PROVIDER, ToolCall
from ..protocols.common.tool_names import ToolNames

# Anthropic's ids of server tools, also when a gateway made Chat calls of them.
PROVIDER_IDS = ("srvtoolu_", "xs_call_")
# xAI shows its searches as freeform calls.
_NAMES = frozenset(
    {
        "browse_page",
        "code_execution",
        "collections_search",
        "view_image",
        "view_x_video",
        "web_search",
        "web_search_with_snippets",
        "x_keyword_search",
        "x_semantic_search",
        "x_thread_fetch",
        "x_user_search",
    }
)


def is_run_by_provider(call: ToolCall, names: ToolNames, *, same: bool) -> bool:
    """Did the provider run this call, of a tool that the client did not declare?

    `same`: the client speaks the upstream's protocol, so it knows its hosted tools.
    """
    kind = (call.extras or {}).get(RUN_BY_PROVIDER)
    if same and names.hosts(str(kind)):
        return False  # Moonshot's `builtin_function`, which a client declares and answers
    if call.id.startswith(PROVIDER_IDS) or kind is not None:
        return True
    if call.kind == "custom":
        # A model makes up no freeform call: without such a tool there is nothing to call.
        return names.knows_tools or call.name in _NAMES
    return not same and names.hosts(call.name)
