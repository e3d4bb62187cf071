"""Every complaint is one sentence with the file, the line and what to do."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config import ConfigError, loads
from dragoman.config.keys import SECTIONS, SMALL_TABLES
from dragoman.config.read import Source, read

UPSTREAM = """[upstreams.groq]
[[routes]]
match = "*"
to = "groq/*"
"""

COMPLAINTS = [
    # unknown names
    ('[server]\nprt = 1', '2: unknown key "prt" in [server]; did you mean "port"?'),
    ("[sever]\nport = 1", '1: unknown table "sever"; did you mean "server"?'),
    ("port = 1", '1: unknown key "port"'),
    ('[[routes]]\nmacth = "*"\nto = "groq/x"', '2: unknown key "macth" in [[routes]]; did you mean "match"?'),
    ('[[routes]]\nxyz = 1\nmatch = "*"\nto = "groq/x"',
     '2: unknown key "xyz" in [[routes]]; valid keys are match, to'),
    ('[upstreams.a]\nbaseurl = "x"', '2: unknown key "baseurl" in [upstreams.a]; did you mean "base_url"?'),
    ("[tools]\nloops = { note_aftr = 1 }",
     '2: loops in [tools] has the unknown key "note_aftr"; did you mean "note_after"?'),
    ('[tools]\noff = [\n  "code-fenc",\n]',
     '3: off in [tools] names the rule "code-fenc", which does not exist; did you mean "code-fence"?'),
    # wrong types and values
    ('[server]\nport = "80"', "2: port in [server] must be a whole number from 0 to 65535, not text"),
    ("[server]\nport = 70000", "2: port in [server] must be a whole number from 0 to 65535, not 70000"),
    ("[server]\nport = true",
     "2: port in [server] must be a whole number from 0 to 65535, not true or false"),
    ("[server]\nstrict = 1", "2: strict in [server] must be true or false, not a number"),
    ("[server]\nkeys = 'k'", "2: keys in [server] must be a list, not text"),
    ('[server]\nkeys = ["env:"]', '2: keys in [server] must name a variable after "env:"'),
    ("[server]\nhost = ''", "2: host in [server] must not be empty"),
    ('[server]\nkeepalive = "soon"',
     '2: keepalive in [server] must be a number of seconds, or a time such as "500ms", "15s", '),
    ("[server]\nkeepalive = -1", "2: keepalive in [server] must be a number of at least 0, not -1"),
    ('[server]\nmax_body = "much"',
     '2: max_body in [server] must be a number of bytes, or a size such as "64MB"'),
    ("[[server]]\nport = 1", "1: server must be written as [server], not as a list"),
    ("[tools]\ninvalid = 'pas'",
     '2: invalid in [tools] must be "pass", "reask" or "error", not "pas"; did you mean "pass"?'),
    ("[clients]\ncursor = 'whole'",
     '2: "cursor" in [clients] must be a table, [clients.cursor], not text'),
    ('[server]\nkeepalive = []', "2: keepalive in [server] must be a number of seconds, not a list"),
    ('[upstreams.a]\nprovider = "groq"\nidle_timeout = 0',
     "3: idle_timeout in [upstreams.a] must be more than 0 seconds"),
    ('[[routes]]\nmatch = "a"\nto = { target = "groq/x", weight = "1" }',
     "3: to in [[routes]] weight must be a number, not text"),
    ('[[routes]]\nmatch = "a"\nto = { weight = 1 }', '3: to in [[routes]] needs "target"'),
    ('[[routes]]\nmatch = "a"\nto = "groq/*/*"', '3: to in [[routes]] has more than one "*" in "groq/*/*"'),
    ('[upstreams.a]\nprovider = "groq"\nmodels = [{ context = 1 }]',
     '3: models in [upstreams.a] needs "name"'),
    ("[tools]\nloops = 1", "2: loops in [tools] must be a table, not a number"),
    ("[tools]\ninvalid = 1", '2: invalid in [tools] must be "pass", "reask" or "error", not a number'),
    ('[upstreams.a]\nprovider = "groq"\nheaders = { x = 1 }',
     '3: headers in [upstreams.a] must set the header "x" to one line of text'),
    ('[upstreams.a]\nprovider = "groq"\nheaders = { x = "1", X = "2" }',
     '3: headers in [upstreams.a] sets the header "X" twice'),
    # upstreams
    ("[upstreams.a]", "1: [upstreams.a] has no protocol: set protocol or provider"),
    ('[upstreams.a]\nprotocol = "gemini"', "1: [upstreams.a] has no base_url"),
    ('[upstreams.a]\nprotocol = "openai"\nbase_url = "https://x"',
     '2: protocol in [upstreams.a] must be "anthropic", "openai-chat", "openai-responses" or "gemini", not '),
    ('[upstreams.a]\nprotocol = "gemini"\nbase_url = "localhost:80"',
     '3: [upstreams.a] base_url must begin with https:// or http://, as in "https://localhost:80"'),
    ('[upstreams.a]\nprotocol = "gemini"\nbase_url = "ftp://x"',
     "3: [upstreams.a] base_url must begin with https:// or http://, not ftp://"),
    ('[upstreams.a]\nprotocol = "gemini"\nbase_url = "https://me:secret@x"',
     "3: [upstreams.a] base_url must not contain a user name or password; use credential instead"),
    ('[upstreams.a]\nprotocol = "openai-responses"\nbase_url = "https://x/v1/chat/completions"',
     '3: [upstreams.a] base_url ends in "/chat/completions", which belongs to the protocol "openai-chat"'),
    ('[upstreams.a]\nprovider = "grok"',
     '2: provider in [upstreams.a] names the provider "grok", which is unknown; did you mean "groq"?'),
    ('[upstreams.a]\nprovider = "groq"\nprotocol = "gemini"',
     '3: [upstreams.a] has no base_url, and the provider "groq" has no known address for "gemini"'),
    ('[upstreams."a/b"]\nprovider = "groq"',
     '1: [upstreams.a/b]: the name of an upstream must not be empty or contain "/" or "*"'),
    ('[upstreams.a]\nprovider = "groq"\nheaders = { Host = "x" }',
     '3: headers in [upstreams.a] cannot set the header "Host"'),
    ('[upstreams.a]\nprovider = "groq"\ncredential = 1',
     "3: credential in [upstreams.a] must be text or a table, not a number"),
    # routes
    ('[[routes]]\nto = "groq/x"', '1: [[routes]] has no "match"'),
    ('[[routes]]\nmatch = "a"', '1: [[routes]] has no "to"'),
    ('[[routes]]\nmatch = "a"\nto = [\n  "groq/*",\n  "grok/x",\n]',
     '5: to in [[routes]] names the upstream "grok", which is not configured; did you mean "groq"?'),
    ('[[routes]]\nmatch = "a"\nto = "xai/grok"',
     '3: to in [[routes]] names the upstream "xai", which is not configured; add [upstreams.xai] to use it'),
    ('[[routes]]\nmatch = "a"\nto = "groq"',
     '3: to in [[routes]] must be "upstream/model", not "groq"; "groq/*" keeps the client\'s model name'),
    ('[[routes]]\nmatch = "a"\nto = []', "3: to in [[routes]] must not be an empty list"),
    ('[[routes]]\nmatch = "a"\nto = { target = "groq/x", wait = 1 }',
     '3: to in [[routes]] has the unknown key "wait"; did you mean "weight"?'),
    ('[[routes]]\nmatch = "a"\nto = { target = "groq/x", params = { model = "y" } }',
     '3: to in [[routes]] params cannot set "model": Dragoman writes that field itself'),
    ('[[routes]]\nmatch = "a[b"\nto = "groq/x"',
     '2: match in [[routes]] is not a glob: in "a[b", "[" has no closing "]"'),
    ('[[routes]]\nmatch = "[z-a]"\nto = "groq/x"',
     '2: match in [[routes]] is not a glob: in "[z-a]", the range z-a is reversed'),
    ('[[routes]]\nmatch = "^claude"\nto = "groq/x"',
     '2: match in [[routes]] is not a glob: in "^claude", "^" has'),
    ('[tiers]\nhuge = "groq/x"', '2: unknown key "huge" in [tiers]; valid keys are small, middle, big'),
    ('[aliases]\nfast = "groqq/x"',
     '2: fast in [aliases] names the upstream "groqq", which is not configured'),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), COMPLAINTS)
def test_complaints(text: str, expected: str) -> None:
    text = text.rstrip() + "\n"
    with pytest.raises(ConfigError) as caught:
        loads(text + ("" if "[upstreams.groq]" in text else UPSTREAM))
    assert len(caught.value.problems) == 1
    assert caught.value.message.startswith(f"dragoman.toml:{expected}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("port = 1\nport = 2", '2: "port" is given twice'),
        ("[server]\n[server]", "2: [server] is given twice"),
        ("x =", "1: this is not valid TOML: invalid value"),
        (
            "[server]\nport = 1 2",
            "2: this is not valid TOML: expected newline or end of document after a statement",
        ),
        ('a = """', "1: this is not valid TOML: "),
    ],
)
def test_what_is_not_toml(text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loads(text)
    assert caught.value.message.startswith(f"dragoman.toml:{expected}")


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file() -> None:
    with pytest.raises(ConfigError) as caught:
        loads('[[routes]]\nmatch = ""\n[server]\nport = "x"\nprt = 1\n' + UPSTREAM.partition("[[")[0])
    assert [p.split(" ")[0] for p in caught.value.problems] == [
        "dragoman.toml:1:",
        "dragoman.toml:2:",
        "dragoman.toml:4:",
        "dragoman.toml:5:",
    ]


@pytest.mark.parametrize(
    "written", ['credential = "sk-very-secret"', 'credential = { env = "sk-very-secret" }']
)
def test_a_key_in_the_wrong_place_is_not_repeated(written: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loads(f'[upstreams.a]\nprovider = "groq"\n{written}')
    assert caught.value.message.startswith("dragoman.toml:3: credential in [upstreams.a] ")
    assert "very" not in repr(caught.value) + caught.value.message


# Whatever is written, the answer is a config or a sentence.
WORDS = st.sampled_from(
    [*(key for keys in (*SECTIONS.values(), *SMALL_TABLES.values()) for key in keys), "groq", "x", ""]
)
SCALARS = (
    st.sampled_from(
        ["*", "groq/*", "env:X", "none", "gemini", "https://x", "http://[", "15s", "[", "", "a\0b"]
    )
    | st.integers()
    | st.floats()
    | st.booleans()
    | st.dates()
)
VALUES = st.recursive(
    SCALARS, lambda v: st.lists(v, max_size=3) | st.dictionaries(WORDS, v, max_size=4), max_leaves=12
)
TOP = st.sampled_from(["server", "upstreams", "routes", "aliases", "tiers", "tools", "clients", "x"])


@given(st.dictionaries(TOP, VALUES, max_size=5))
def test_nothing_but_sentences(raw: dict[str, Any]) -> None:
    problems: tuple[str, ...] = ()
    try:
        read(Source(raw=raw, shown="dragoman.toml"))
    except ConfigError as error:
        problems = error.problems
    assert all(problem.startswith("dragoman.toml: ") for problem in problems)
