"""The cache of tool names gives the same names as a fresh computation, and is limited."""

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.model.messages import Tool
from dragoman.protocols.common import tool_names as names
from dragoman.protocols.common.tool_names import NameRule, ToolNames

RULES = [
    NameRule(r"[a-zA-Z0-9_-]+", 64),
    NameRule(r"[a-zA-Z0-9_-]+", 64, custom=True, namespaces=True),
    NameRule(r"(?s).+", 1 << 16, namespaces=True),
]
Kind = Literal["function", "custom", "hosted"]
KINDS: list[Kind] = ["function", "function", "function", "custom", "hosted"]
SPELLED = ["read", "write", "a__b", "b", "mcp.tool", "x" * 70, "ß", ""]

tools = st.builds(
    lambda name, namespace, kind: Tool(name=name, namespace=namespace, kind=kind),
    st.sampled_from(SPELLED),
    st.sampled_from([None, None, None, "", "a"]),
    st.sampled_from(KINDS),
)


def given_out(offered: list[Tool], rule: NameRule) -> object:
    """Every result of a `ToolNames`."""
    made = ToolNames(offered, rule)
    out = [made.out(tool.name, tool.namespace) for tool in offered]
    asked = [(name, space) for name in [*SPELLED, *out] for space in (None, "", "a", "z")]
    return out, [made.called(*names) for names in asked], list(made.declared().items())


@pytest.mark.parametrize("rule", RULES)
@given(offered=st.one_of(st.lists(tools, max_size=5), st.permutations(SPELLED).map(lambda n: plain(n[:4]))))
def test_cached_and_fresh_names_are_the_same(rule: NameRule, offered: list[Tool]) -> None:
    names._matcher.cache_clear()  # pyright: ignore[reportPrivateUsage]
    first = given_out(offered, rule)
    assert given_out(offered, rule) == first


def plain(spelled: list[str]) -> list[Tool]:
    return [Tool(name=name) for name in spelled]


def test_the_cache_of_names_is_limited() -> None:
    rule = NameRule(r"[a-z0-9]+", 1 << 16)
    for number in range(5):
        ToolNames(plain([f"{number}n{at}" for at in range(1000)] + ["l" * 200]), rule)
    _, found = names._matcher(rule.pattern, rule.longest)  # pyright: ignore[reportPrivateUsage]
    assert 4000 <= len(found) <= 4096
    assert max(map(len, found)) <= 128
