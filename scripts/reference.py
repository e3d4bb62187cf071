"""Writes the generated pages of the manual: commands, events, order, rules, protocols, profiles, laws, ….

`python scripts/reference.py` rewrites them; a test fails when one is out of date.
"""

from __future__ import annotations

import ast
import inspect
import typing
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import click
import leak_formats
import warning_names

from dragoman.cli import main as command_line
from dragoman.cli.errors import CODES, OWN_CODES
from dragoman.conform import compare, probes
from dragoman.conform.laws import Law, framing, http, judge_of
from dragoman.model import events, messages
from dragoman.model.order import ANSWER, BLOCK
from dragoman.profiles import PROFILES, Profile, Signs
from dragoman.profiles.detection import ENOUGH, FIELD, HEADER, MOST_FOR_TOOLS, PATH, PROMPT, TOOL
from dragoman.protocols.cursor.answer.kinds import KINDS, Field
from dragoman.protocols.registry import CLIENTS, PROTOCOLS
from dragoman.tools.rules import ANSWER_RULES, RULES

DOCS = Path(__file__).parent.parent / "docs" / "reference"
PACKAGE = Path(inspect.getfile(events)).parent.parent


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
            "Which event may follow which, drawn from the table in `src/dragoman/model/order.py`.",
            "Everything else is illegal. The error says what came and whose fault it is.",
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
        f"| {'one after another' if p.serial else 'may interleave'} "
        f"| {'yes' if p.name in PROTOCOLS else 'no'} |"
        for p in CLIENTS.values()
    ]
    return "\n".join(
        [
            "# Protocols",
            "",
            "| protocol | tool-call ids | tool names | freeform tools | namespaces | blocks | upstreams |",
            "| --- | --- | --- | --- | --- | --- | --- |",
            *rows,
            "",
            "`cursor` is a reply protocol: clients are answered in it, no upstream speaks it. What it says",
            "is described in [Cursor's replies](cursor.md).",
            "",
        ]
    )


def cursor_page() -> str:
    """Cursor's tools and their parameter structures."""
    rows = [
        f"| {kind.tool:d} `{kind.tool.name}` | {', '.join(f'`{name}`' for name in kind.names)} "
        f"| `{kind.params}` | {'; '.join([*map(_taken, kind.fields), *map(_fixed, kind.fixed.items())])} |"
        for kind in KINDS
    ]
    return "\n".join(
        [
            "# Cursor's tools",
            "",
            "Which of Cursor's tools a call becomes, by the name the model uses, and where its arguments",
            "go. Each member is taken from the argument of its own name or, in parentheses, of another",
            "one. How calls are given is told in [Cursor's replies](cursor.md).",
            "",
            "| tool | called as | parameters | members |",
            "| --- | --- | --- | --- |",
            *rows,
            "",
        ]
    )


def _taken(field: Field) -> str:
    sources = [f"`{name}`" for name in field.sources if name != field.name]
    return f"`{field.name}`" + (f" ({', '.join(sources)})" if sources else "")


def _fixed(member: tuple[str, object]) -> str:
    name, value = member
    return f"`{name}: {str(value).lower()}`"


def profiles_page() -> str:
    """Who is known, by what, and what is different for them."""
    lines = [
        "# Client profiles",
        "",
        "Each client has habits. Dragoman tells who asks by several signs together and answers as that",
        "client wants it. The name is in the log line of every exchange, and",
        "[`[clients.NAME]`](configuration.md#clientsname) changes what is done for it.",
        "",
        f"Who has the most signs is it, if they count at least {ENOUGH}: a user agent alone proves nothing.",
        "Agents are looked for before the SDKs they are made with.",
        "",
        "| sign | counts |",
        "| --- | --- |",
        f"| a path of its own | {PATH} |",
        f"| a header | {HEADER} |",
        f"| words near the beginning of the system prompt | {PROMPT} |",
        f"| a member of the body | {FIELD} |",
        f"| a tool's name | {TOOL}, all together at most {MOST_FOR_TOOLS} |",
        "",
        "| name | client | speaks | arguments | keepalive |",
        "| --- | --- | --- | --- | --- |",
        *(_profile_row(profile) for profile in PROFILES.values()),
        "",
        "*Keepalive* is what fills a silence, in each protocol the form its SDK survives: a `ping` event",
        "(Anthropic), a comment (OpenAI), nothing (Gemini).",
        "",
    ]
    for profile in PROFILES.values():
        lines += [f"## {profile.title}", "", f"`{profile.name}`", ""]
        for title, listed in (("Told by", _signs(profile.signs)), ("Peculiar", profile.notes)):
            lines += [f"{title}:", "", *(f"- {line}" for line in listed), ""] if listed else []
    return "\n".join(lines)


def _profile_row(profile: Profile) -> str:
    speaks = ", ".join(f"`{name}`" for name in profile.protocols)
    keepalive = "an event" if profile.keepalives else "its protocol's"
    return f"| `{profile.name}` | {profile.title} | {speaks} | {profile.arguments} | {keepalive} |"


def _signs(signs: Signs) -> list[str]:
    headers = [_header(name, parts) for name, parts in signs.headers.items()]
    kinds = {
        "Paths": [f"`{path}…`" for path in signs.paths],
        "Headers": headers,
        "Prompt": [f"“{words}”" for words in signs.prompts],
        "Members": [f"`{name}`" for name in sorted(signs.fields)],
        "Tools": [f"`{name}`" for name in sorted(signs.tools)],
    }
    return [f"{kind}: {', '.join(shown)}" for kind, shown in kinds.items() if shown]


def _header(name: str, parts: tuple[str, ...]) -> str:
    held = " or ".join(f"`{part}`" for part in parts if part)
    return f"`{name}` with {held}" if held else f"`{name}`"


def laws_page() -> str:
    """Every law that `dragoman conform` knows."""
    lines = [
        "# Laws",
        "",
        "What `dragoman conform` holds an endpoint to, drawn from `src/dragoman/conform/`.",
        "A law in *italics* is only noted when broken, since it hangs on the model as well;",
        "with `--strict` it counts.",
        "",
        "Every endpoint:",
        "",
        *_law_table([*http.LAWS, *framing.STREAM, framing.CALL_JSON, *probes.LAWS]),
    ]
    shared = {*framing.STREAM, framing.CALL_JSON}
    for protocol in CLIENTS:
        own = [law for law in judge_of(protocol).laws_of_streams if law not in shared]
        lines += [f"## {protocol}", "", *_law_table(own)]
    lines += [
        "## Recorded cases",
        "",
        "What a gateway makes of the cases the built-in upstream plays to it:",
        "",
        *_law_table([*compare.LAWS]),
    ]
    return "\n".join(lines)


def _law_table(laws: list[Law]) -> list[str]:
    rows = [f"| {f'`{law.name}`' if law.firm else f'*{law.name}*'} | {law.says} |" for law in laws]
    return ["| law | says |", "| --- | --- |", *rows, ""]


def commands_page() -> str:
    """Every command with its arguments, options and exit codes, from the command line itself."""
    lines = [
        "# Commands",
        "",
        "Drawn from the commands' own help: `dragoman COMMAND --help` says the same. `dragoman --version`",
        "prints the version, `dragoman` alone says what to do next, and [`completion`](#completion) makes a",
        "shell complete all of it. Colours are for terminals, and not",
        "where `NO_COLOR` is set.",
        "",
        *_codes(CODES, "means, unless a command says otherwise"),
    ]
    for name, command in sorted(command_line.commands.items()):
        context = click.Context(
            command, info_name=name, parent=click.Context(command_line, info_name="dragoman")
        )
        usage = " ".join(["dragoman", name, *command.collect_usage_pieces(context)])
        lines += [f"## {name}", "", f"`{usage}`", "", *_help(command), *_options(command, context)]
        lines += _codes(OWN_CODES[name]) if name in OWN_CODES else []
    return "\n".join(lines)


def _codes(codes: Mapping[int, str] | Mapping[str, str], means: str = "means") -> list[str]:
    rows = [f"| {code} | {says} |" for code, says in codes.items()]
    return [f"| exit code | {means} |", "| --- | --- |", *rows, ""]


def _help(command: click.Command) -> list[str]:
    """Paragraphs as they are; those that click keeps line by line are examples."""
    lines: list[str] = []
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        kept = paragraph.removeprefix("\b\n")
        if kept == paragraph:
            lines += [*paragraph.splitlines(), ""]
            continue
        title, *examples = kept.splitlines()
        commands = [f"$ {example.strip()}" for example in examples]
        lines += [title, "", *(["```console", *commands, "```", ""] if commands else [])]
    return lines


def _options(command: click.Command, context: click.Context) -> list[str]:
    shown = [o for o in command.params if isinstance(o, click.Option) and not o.hidden]
    rows: list[str] = []
    for option in shown:
        value = "" if option.is_flag else f" {option.make_metavar(context)}"
        default = option.default if option.show_default and not callable(option.default) else None
        told = [option.help or "", f"Default: `{default}`." if default is not None else ""]
        told += [f"Also `${option.envvar}`." if option.envvar else ""]
        cells = [f"`{', '.join(option.opts)}{value}`".replace("|", "\\|"), " ".join(filter(None, told))]
        rows.append(f"| {' | '.join(cells)} |")
    return ["| option | means |", "| --- | --- |", *rows, ""] if rows else []


def events_page() -> str:
    """Every neutral event and part with its members, from the code."""
    parts = [part for part in typing.get_args(messages.Part) if inspect.isclass(part)]
    told = {**_members(events), **_members(messages)}
    lines = [
        "# Events",
        "",
        "What an answer is made of, whatever wire it came over, drawn from `src/dragoman/model/events.py`.",
        "[The order](order.md) says what may follow what, [the language](../explanation/the-language.md)",
        "why.",
        "",
    ]
    for event in typing.get_args(events.Event):
        lines += _struct(event, told[event.__name__])
    lines += ["# Parts", "", "What a block holds, and what messages are made of (`messages.py`).", ""]
    for part in parts:
        lines += _struct(part, told[part.__name__])
    for kind in (events.Stop, events.FailureKind):
        words = ", ".join(f"`{word.value}`" for word in kind)
        lines += [f"# {kind.__name__}", "", f"{_first(kind)} {words}.", ""]
    lines += _struct(events.Usage, told["Usage"])
    return "\n".join(lines).replace("\n# ", "\n## ")


def _struct(kind: type, members: list[tuple[str, str, str]]) -> list[str]:
    rows = [f"| `{name}` | `{type}` | {doc} |".replace(" | None", " or None") for name, type, doc in members]
    table = ["| member | type | |", "| --- | --- | --- |", *rows, ""] if rows else []
    return [f"## {kind.__name__}", "", inspect.cleandoc(kind.__doc__ or ""), "", *table]


def _first(kind: type) -> str:
    return inspect.cleandoc(kind.__doc__ or "").splitlines()[0].partition(" (")[0].rstrip(".,;") + ":"


def _members(module: ModuleType) -> dict[str, list[tuple[str, str, str]]]:
    """Of each class: its members with their types, and the text that follows each."""
    tree = ast.parse(inspect.getsource(module))
    return {node.name: [*_declared(node)] for node in tree.body if isinstance(node, ast.ClassDef)}


def _declared(node: ast.ClassDef) -> typing.Iterator[tuple[str, str, str]]:
    for at, line in enumerate(node.body):
        if not isinstance(line, ast.AnnAssign) or not isinstance(line.target, ast.Name):
            continue
        after = node.body[at + 1] if at + 1 < len(node.body) else None
        text = after.value if isinstance(after, ast.Expr) else None
        doc = inspect.cleandoc(str(text.value)) if isinstance(text, ast.Constant) else ""
        yield line.target.id, ast.unparse(line.annotation), " ".join(doc.split()).replace("|", "\\|")


def warnings_page() -> str:
    """Every notice that something was dropped, weakened or guessed, as the code says it."""
    said = warning_names.said(PACKAGE)
    return "\n".join(
        [
            "# Warnings",
            "",
            "What `x-dragoman-warnings` and a receipt's `notices` name: what has no counterpart at an",
            "upstream and was dropped, moved or weakened on the way, clamped or guessed. Each comes with the",
            "field it is about. With `strict = true` a request that would lose something is refused instead.",
            "Drawn from the code; `…` stands for a name or a number of the request's.",
            "",
            "| warning | says |",
            "| --- | --- |",
            *(
                f"| `{name}` | {'; or: '.join(said[name]) or 'the reason is told with it'} |"
                for name in sorted(said)
            ),
            "| `count-tokens-estimated` | tokens were not counted by the upstream, but estimated here |",
            "",
        ]
    )


PAGES = {
    "commands.md": commands_page,
    "warnings.md": warnings_page,
    "events.md": events_page,
    "order.md": order_page,
    "rules.md": rules_page,
    "protocols.md": protocols_page,
    "profiles.md": profiles_page,
    "cursor-tools.md": cursor_page,
    "laws.md": laws_page,
    "leaks.md": leak_formats.page,
}


def main() -> None:
    """Write all pages."""
    DOCS.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        (DOCS / name).write_text(page())


if __name__ == "__main__":
    main()
