"""Detects calls that the provider runs itself but shows like ordinary calls.

A client that did not declare such a tool cannot run it, so the call is dropped, with a receipt. Most
protocols have separate items for these calls (`server_tool_use`, `web_search_call`, `executableCode`).
This module is about calls that look like the client's own.
"""

from __future__ import annotations

from ..model.messages import ToolCall
from ..protocols.common.tool_names import ToolNames

# Ids of server tools: Anthropic's, also after another gateway turned them into Chat calls; and xAI's.
PROVIDER_IDS = ("srvtoolu_", "xs_call_")
# xAI shows the calls of its hosted tools (X search, browsing) as `custom_tool_call` items with these names,
# already executed and without an output. A client that got them would try to run them.
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
    """Whether the provider ran this call, of a tool that the client did not declare.

    `same`: the client speaks the upstream's protocol, so it knows the hosted tools.
    """
    kind = call.run_by_provider
    if same and (names.hosts(kind) or names.hosts(call.name)):
        return False  # Moonshot's `builtin_function`: the client declares it and returns its result
    if call.id.startswith(PROVIDER_IDS) or kind:
        return True
    if call.kind == "custom":
        # Models do not invent freeform calls: the provider made it.
        return names.knows_tools or call.name in _NAMES
    return not same and names.hosts(call.name)
