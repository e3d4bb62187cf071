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
from dragoman.config.providers import Provider, providers
from dragoman.conform import compare, probes
from dragoman.conform.laws import Law, framing, http, judge_of
from dragoman.model import events, messages
from dragoman.model.order import ANSWER, BLOCK
from dragoman.profiles import PROFILES, Background, Profile, Signs
from dragoman.profiles.detection import FIELD, HEADER, MAX_FOR_TOOLS, MIN_SCORE, PATH, PROMPT, TOOL
from dragoman.protocols.cursor.answer.kinds import KINDS, Field
from dragoman.protocols.registry import CLIENTS, ONE_SIDED, PROTOCOLS
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
            "Which event may follow which, generated from `src/dragoman/model/order.py`. Any other order is",
            "an error. Its message names the event and who sent it.",
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
            "`End` is allowed only when no block is open.",
            "",
            "## A block, by its content",
            "",
            "`Carried` and `Unknown` may name any open block.",
            "",
            "| block | allowed events |",
            "| --- | --- |",
            *rows,
            "",
        ]
    )


def rules_page() -> str:
    """Every mending rule with its example."""
    lines = [
        "# Repair rules",
        "",
        "Dragoman applies these rules in this order. A rule is applied only if the rules before it did not",
        "make the call fit its schema. Each use is on the call's receipt. Each rule can be",
        "[switched off](../how-to/mending.md#switch-a-rule-off) by its name. `dragoman rules` prints this",
        "list.",
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
    """The rules of each protocol for ids, names and blocks."""
    rows = [
        f"| `{p.name}` | `{p.ids.pattern}`, up to {p.ids.max_length} "
        f"| `{p.names.pattern}`, up to {p.names.max_length} "
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
            "`cursor` is a reply format only: Dragoman answers clients in it, and no upstream speaks it. See",
            "[Cursor's replies](cursor.md).",
            "",
            f"Only upstreams speak {', '.join(f'`{name}`' for name in ONE_SIDED)}.",
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
            "How the name of a call selects one of Cursor's tools, and where its arguments go. Each member",
            "takes the argument of the same name or, in parentheses, of another name. See",
            "[Cursor's replies](cursor.md) for the format of a call.",
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
    """Every known client, its signs, and its settings."""
    lines = [
        "# Client profiles",
        "",
        "Clients differ in what they accept. Dragoman recognises a client by several signs and adapts its",
        "answers. The log line of every request names the profile. You can change a profile with",
        "[`[clients.NAME]`](configuration.md#clientsname).",
        "",
        f"Each sign has points. The profile with the most points is used, if it has at least {MIN_SCORE}; a",
        "user agent alone is not enough. Agents are checked before the SDKs that they use.",
        "",
        "| sign | points |",
        "| --- | --- |",
        f"| its own path | {PATH} |",
        f"| a header | {HEADER} |",
        f"| text near the beginning of the system prompt | {PROMPT} |",
        f"| a member of the body | {FIELD} |",
        f"| a tool's name | {TOOL} each, at most {MAX_FOR_TOOLS} |",
        "",
        "| name | client | speaks | arguments | keepalive |",
        "| --- | --- | --- | --- | --- |",
        *(_profile_row(profile) for profile in PROFILES.values()),
        "",
        "*Keepalive* is what Dragoman sends while the upstream is silent. The protocols' own forms are a",
        "`ping` event (Anthropic), a comment (OpenAI) and nothing (Gemini).",
        "",
    ]
    for profile in PROFILES.values():
        lines += [f"## {profile.title}", "", f"`{profile.name}`", ""]
        parts = (
            ("Recognised by", _signs(profile.signs)),
            (
                "In the background: requests without tools, with",
                _own(profile.background),
            ),
            ("Notes", profile.notes),
        )
        for title, listed in parts:
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


def _own(signs: Background | None) -> list[str]:
    """The signs of a client's background requests, one of which is enough."""
    if signs is None:
        return []
    prompts = " or ".join(f"“{words}”" for words in signs.prompts)
    models = " or ".join(f"`{word}`" for word in signs.models)
    kinds = {
        f"a model whose name contains {models}": signs.models,
        f"{prompts} in the system prompt": signs.prompts,
        "a JSON schema for the answer": signs.has_schema,
        f"`max_tokens` of at most {signs.max_tokens}": signs.max_tokens,
    }
    *first, last = [kind for kind, shown in kinds.items() if shown]
    return [f"{', '.join(first)} or {last}" if first else last]


def _header(name: str, parts: tuple[str, ...]) -> str:
    held = " or ".join(f"`{part}`" for part in parts if part)
    return f"`{name}` with {held}" if held else f"`{name}`"


def laws_page() -> str:
    """Every law that `dragoman conform` knows."""
    lines = [
        "# Laws",
        "",
        "The laws that `dragoman conform` checks, generated from `src/dragoman/conform/`. A law in *italics*",
        "depends on the model as well as the endpoint. A breach of it is only noted, unless you pass",
        "`--strict`.",
        "",
        "For every endpoint:",
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
        "For a gateway, when the built-in upstream plays recorded failures to it:",
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
        "Generated from the help texts: `dragoman COMMAND --help` prints the same. `dragoman --version`",
        "prints the version, `dragoman` alone suggests what to do next, and [`completion`](#completion) sets",
        "up shell completion. Output is coloured only on terminals, and not if `NO_COLOR` is set.",
        "",
        *_codes(CODES, "meaning, unless a command says otherwise"),
    ]
    top = click.Context(command_line, info_name="dragoman")
    for name, command in sorted(command_line.commands.items()):
        lines += _command("##", name, command, top)
        lines += _codes(OWN_CODES[name]) if name in OWN_CODES else []
    return "\n".join(lines)


def _command(head: str, name: str, command: click.Command, parent: click.Context) -> list[str]:
    """A command, and the commands below it."""
    context = click.Context(command, info_name=name, parent=parent)
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    title = context.command_path.removeprefix("dragoman ")
    lines = [f"{head} {title}", "", f"`{usage}`", "", *_help(command), *_options(command, context)]
    if isinstance(command, click.Group):
        for inner, below in sorted(command.commands.items()):
            lines += _command(f"{head}#", inner, below, context)
    return lines


def _codes(codes: Mapping[int, str] | Mapping[str, str], means: str = "meaning") -> list[str]:
    rows = [f"| {code} | {says} |" for code, says in codes.items()]
    return [f"| exit code | {means} |", "| --- | --- |", *rows, ""]


def _help(command: click.Command) -> list[str]:
    """Paragraphs unchanged; those that click keeps line by line are examples."""
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
    return ["| option | meaning |", "| --- | --- |", *rows, ""] if rows else []


def events_page() -> str:
    """Every neutral event and part with its members, from the code."""
    parts = [part for part in typing.get_args(messages.Part) if inspect.isclass(part)]
    told = {**_members(events), **_members(messages)}
    lines = [
        "# Events",
        "",
        "The neutral events of an answer, generated from `src/dragoman/model/events.py`. See",
        "[the order of events](order.md) and [the neutral language](../explanation/the-language.md).",
        "",
    ]
    for event in typing.get_args(events.Event):
        lines += _struct(event, told[event.__name__])
    lines += ["# Parts", "", "The content of blocks and messages (`messages.py`).", ""]
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
    """The members of each class with their types and docstrings."""
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
    """Every notice about a dropped, weakened or guessed part, from the code."""
    messages = warning_names.messages(PACKAGE)
    return "\n".join(
        [
            "# Warnings",
            "",
            "The names in `x-dragoman-warnings` and in the `notices` of a receipt. Most warnings mean that a",
            "part of the request has no counterpart at the upstream and was dropped, moved, lowered or",
            "estimated. With `strict = true`, Dragoman refuses such a request. The others say what Dragoman",
            "did itself, such as a web search (`web-searched`) or a second request (`asked-again`). Each",
            "warning names its field.",
            "",
            "This table is generated from the code; `…` stands for a name or a number of the request.",
            "",
            "| warning | message |",
            "| --- | --- |",
            *(
                f"| `{name}` | {'; or: '.join(messages[name]) or 'the message gives the reason'} |"
                for name in sorted(messages)
            ),
            "| `count-tokens-estimated` | the upstream did not count the tokens; Dragoman estimated them |",
            "",
        ]
    )


def _provider_row(provider: Provider) -> str:
    credential = provider.upstream["credential"]
    keys = ", ".join(f"`{name}`" for name in provider.variables()) if credential.startswith("env:") else ""
    shown = keys or {"aws": "AWS credentials", "google": "Google credentials"}.get(credential, "none")
    known = provider.upstream.get("base_url")
    address = f"`{known}`" if known else f"your own, such as `{provider.example}`"
    also = ", ".join(f"`{name}`" for name in provider.also)
    others = ", ".join(provider.upstream.get("other_endpoints", ()))
    by_key = "" if provider.only_named else "yes"
    return (
        f"| `{provider.name}` | `{provider.protocol}` | {address} | {shown} | {by_key} | {also} | {others} |"
    )


def providers_page() -> str:
    """All providers that are known by name."""
    return "\n".join(
        [
            "# Known providers",
            "",
            f"Dragoman knows {len(providers())} providers by name: `[upstreams.groq]` is enough.",
            "A table with the name of a provider takes its protocol, its address, its key and its quirks",
            "from here, and every key of [the config](configuration.md#upstreamsname) replaces one of them.",
            "With another `base_url`, the protocol and the quirks stay, but the provider's key is not sent",
            "there unless `credential` says so. A server at another address than OpenAI's under the name",
            "`openai` is an `openai-chat` server without OpenAI's quirks. This table is generated from",
            "`config/providers.toml`.",
            "",
            "| name | protocol | address | key | used if its key is set | also speaks | other endpoints |",
            "| --- | --- | --- | --- | --- | --- | --- |",
            *map(_provider_row, providers().values()),
            "",
        ]
    )


PAGES = {
    "providers.md": providers_page,
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
