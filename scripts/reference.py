"""Writes the pages of the manual that are generated from the code: the order table and the rules.

`python scripts/reference.py` rewrites them; a test fails when one is out of date.
"""

from __future__ import annotations

from pathlib import Path

from dragoman.order import ANSWER, BLOCK
from dragoman.protocols.registry import PROTOCOLS
from dragoman.tools.rules import ANSWER_RULES, RULES

DOCS = Path(__file__).parent.parent / "docs" / "reference"


def order_page() -> str:
    """The state diagram of an answer, from the table."""
    arrows = [
        f"    {state} --> {after}: {', '.join(k.__name__ for k, to in table.items() if to == after)}"
        for state, table in ANSWER.items()
        for after in dict.fromkeys(table.values())
    ]
    rows = [
        f"| `{part.__name__}` | {', '.join(sorted(f'`{k.__name__}`' for k in kinds))} |"
        for part, kinds in BLOCK.items()
    ]
    return "\n".join(
        [
            "# The order of events",
            "",
            "Which event may follow which, drawn from the table in `src/dragoman/order.py`. Everything that",
            "is not here is illegal, and an error that says what came and whose fault it is.",
            "",
            "## An answer",
            "",
            "```mermaid",
            "stateDiagram-v2",
            "    [*] --> idle",
            *arrows,
            "    over --> [*]",
            "```",
            "",
            "`End` may only come when no block is open.",
            "",
            "## A block, by what it holds",
            "",
            "| block | may get |",
            "| --- | --- |",
            *rows,
            "",
        ]
    )


def rules_page() -> str:
    """Every mending rule with its example."""
    lines = [
        "# Mending rules",
        "",
        "In the order they are tried, each only when those before it did not make the call fit its",
        "schema. Each can be switched off by its name, and each use is on the call's receipt.",
        "`dragoman rules` lists them too.",
        "",
    ]
    for name, reason in ANSWER_RULES.items():
        lines += [f"## {name}", "", f"*answer.* {reason}", ""]
    for rule in RULES:
        _, _, example = rule.doc.partition("\n")
        lines += [f"## {rule.name}", "", f"*{rule.stage}.* {rule.reason}", ""]
        lines += ["```text", example.strip(), "```", ""] if example.strip() else []
    return "\n".join(lines)


def protocols_page() -> str:
    """What each protocol wants of ids, names and blocks."""
    rows = [
        f"| `{p.name}` | `{p.ids.pattern}`, up to {p.ids.longest} "
        f"| `{p.names.pattern}`, up to {p.names.longest} "
        f"| {'yes' if p.names.custom else 'no'} | {'yes' if p.names.namespaces else 'no'} "
        f"| {'one after another' if p.serial else 'may interleave'} |"
        for p in PROTOCOLS.values()
    ]
    return "\n".join(
        [
            "# Protocols",
            "",
            "| protocol | tool-call ids | tool names | freeform tools | namespaces | blocks |",
            "| --- | --- | --- | --- | --- | --- |",
            *rows,
            "",
        ]
    )


PAGES = {"order.md": order_page, "rules.md": rules_page, "protocols.md": protocols_page}


def main() -> None:
    """Write all pages."""
    DOCS.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        (DOCS / name).write_text(page())


if __name__ == "__main__":
    main()
