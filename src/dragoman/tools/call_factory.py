"""Makes the client's call of an upstream's call: the name, the id and the kind that the client knows."""

from __future__ import annotations

from ..model.events import BlockStart
from ..model.messages import ToolCall
from ..protocols.common import call_ids
from ..protocols.common.tool_names import CalledTool
from .arguments import assemble
from .call import ActiveCall, Arguments, CallStart
from .client_block import ClientBlock
from .freeform import FreeformAsFunction, FreeformFromFunction, FreeformText
from .name_matching import not_offered, resolve, schema_of
from .plan import ToolPlan
from .rules.answer_rules import ANSWER_RULES, MARK_BEFORE_CALL, TOOL_NAME
from .rules.rule import Fix, shorten
from .schema import compile_schema


class CallFactory:
    """Makes the calls of one answer. No two of them have the same id."""

    __slots__ = ("_ids", "_plan")

    def __init__(self, plan: ToolPlan) -> None:
        self._plan = plan
        self._ids: set[str] = set()

    def make(
        self, event: BlockStart, upstream: ToolCall, *, mark: str = "", recovered: str | None = None
    ) -> ActiveCall:
        """The call that `event` begins. `upstream` is the call as the upstream sent it.

        `mark` is an opening mark that was removed from the text before the call.
        """
        plan, names = self._plan, self._plan.names
        called, name = resolve(upstream.name, names, upstream.namespace, mend=plan.rules.on(TOOL_NAME))
        hosted = plan.same and names.hosts(name)  # the client declared it by this name
        if called is None and name and plan.undeclared is not None and not hosted:
            name = plan.undeclared.out(name)
        part = self._part(upstream, called, name)
        offered = called is not None or not name or names.offers(upstream.name, upstream.namespace)
        reason = ANSWER_RULES[MARK_BEFORE_CALL]
        start = CallStart(
            part=part,
            upstream=upstream,
            called=called,
            fault=None if offered else not_offered(upstream.name, names),
            recovered=recovered,
            renamed=called is not None and names.called(upstream.name, upstream.namespace) is None,
            runs_here=bool(plan.search) and called is not None and called.tool.name == plan.search,
            fixes=(Fix(MARK_BEFORE_CALL, "text", shorten(mark.strip()), "", reason),) if mark else (),
        )
        block = ClientBlock(BlockStart(event.block, part, event.extras))
        return ActiveCall(start, block, self._arguments(called, part, upstream), plan.clock)

    def _part(self, upstream: ToolCall, called: CalledTool | None, name: str) -> ToolCall:
        kind = called.tool.kind if called and called.tool.kind != "hosted" else upstream.kind
        return ToolCall(
            id=self._client_id(upstream.id),
            name=name,
            kind=kind if self._plan.custom else "function",
            namespace=called.tool.namespace if called else upstream.namespace,
            seal=upstream.seal,
            replayed=upstream.replayed,
            # The client runs the tools that it declared. Some servers send an unknown type with such calls.
            run_by_provider="" if called else upstream.run_by_provider,
            builtin=called.tool.builtin if called else "",
            extras=upstream.extras,
        )

    def _arguments(self, called: CalledTool | None, part: ToolCall, upstream: ToolCall) -> Arguments:
        if upstream.kind == "custom":
            return FreeformText(self._plan.mode) if part.kind == "custom" else FreeformAsFunction()
        if called is not None and called.wrapped and part.kind == "custom":
            return FreeformFromFunction(part.name, self._plan.rules)
        schema = compile_schema(None) if called is None else schema_of(called, self._plan.names)
        return assemble(self._plan.mode, part.name, schema, self._plan.rules)

    def _client_id(self, id: str) -> str:
        if not id and self._plan.same and self._plan.ids.optional:
            return ""  # Gemini 2 sends no ids, and its clients expect none
        legal = call_ids.for_client(id, self._plan.ids) if id else ""
        if not legal or legal in self._ids:
            # The seed keeps a made-up id unique in the conversation: agents match results to calls by id.
            legal = f"call_{self._plan.seed}_{len(self._ids)}"
        self._ids.add(legal)
        return legal
