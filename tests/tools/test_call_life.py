"""The table of a call's states is complete, and a change that is not in it raises."""

import itertools

import pytest

from dragoman.model.events import BlockStart
from dragoman.model.messages import ToolCall
from dragoman.protocols.common import call_ids
from dragoman.protocols.common.tool_names import NameRule, ToolNames
from dragoman.tools.call import ActiveCall
from dragoman.tools.call_factory import CallFactory
from dragoman.tools.call_life import LEGAL, OVER, Life
from dragoman.tools.plan import ToolPlan


def made() -> ActiveCall:
    plan = ToolPlan(names=ToolNames((), NameRule(r"\w+", 64)), ids=call_ids.ANY, seed="s")
    part = ToolCall(id="c1", name="store")
    return CallFactory(plan).make(BlockStart(0, part), part)


def test_every_state_can_be_reached_and_every_life_ends() -> None:
    reached = {Life.HELD}
    for _ in Life:
        reached |= {state for one in reached for state in LEGAL[one]}
    assert reached == set(LEGAL) == set(Life)
    assert {Life.ENDED, Life.CUT, Life.BARE, Life.UNREADABLE, Life.DROPPED} == OVER


def test_a_call_begins_held() -> None:
    assert made().state is Life.HELD


@pytest.mark.parametrize(("before", "after"), list(itertools.product(Life, Life)))
def test_only_the_changes_of_the_table_are_legal(before: Life, after: Life) -> None:
    call = made()
    call.state = before
    if after in LEGAL[before]:
        call.become(after)
        assert call.state is after
    else:
        with pytest.raises(ValueError, match="cannot become"):
            call.become(after)
        assert call.state is before
