"""Every config error is one sentence with the file, the line and a fix."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config import ConfigError, loads
from dragoman.config.keys import SECTIONS, SMALL_TABLES
from dragoman.config.read import ConfigDocument, read

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
     '2: unknown key "xyz" in [[routes]]; valid keys are match, when, to, prefer'),
    ('[upstreams.a]\nbaseurl = "x"', '2: unknown key "baseurl" in [upstreams.a]; did you mean "base_url"?'),
    ("[tools]\nloops = { note_aftr = 1 }",
     '2: loops in [tools] has the unknown key "note_aftr"; did you mean "note_after"?'),
    ('[tools]\noff = [\n  "code-fenc",\n]',
     '3: off in [tools] names the rule "code-fenc", which does not exist; did you mean "code-fence"?'),
    # names of other tools
    ('[upstreams.a]\nurl = "x"', '2: unknown key "url" in [upstreams.a]; write base_url = "https://…/v1"'),
    ('[upstreams.a]\nkey = "x"', '2: unknown key "key" in [upstreams.a]; write credential = "env:NAME"'),
    ('[[routes]]\nmodel = "*"\nto = "groq/x"',
     '2: unknown key "model" in [[routes]]; write match = "claude-*"'),
    # keys and teams
    ("[keys.ann]\nrole = 'user'", '1: [keys.ann] has no "secret"; write secret = "env:NAME"'),
    ("[keys.ann]\nsecret = 'env:A'\nbuget = '5/day'",
     '3: unknown key "buget" in [keys.ann]; did you mean "budget"?'),
    ("[keys.ann]\nsecret = 'env:A'\nbudget = '5/year'",
     '3: budget in [keys.ann] must be US dollars or tokens per day or month, such as "50/month", '),
    ("[keys.ann]\nsecret = 'env:A'\nbudget = [\n'5/day',\n'6/day',\n]",
     "3: budget in [keys.ann] has two budgets of the same kind for the same period: keep one"),
    ("[keys.ann]\nsecret = 'env:A'\nbudget = '$5 tokens/day'",
     "3: budget in [keys.ann] must be dollars or tokens, not both"),
    ("[keys.ann]\nsecret = 'env:A'\nrate = 60",
     "3: rate in [keys.ann] must be text, not a number"),
    ("[keys.ann]\nsecret = 'env:A'\nrate = '60'",
     '3: rate in [keys.ann] must be a number per min, hour or day, such as "60/min" or "200k/min", not "60"'),
    ("[keys.ann]\nsecret = 'env:A'\nrate = '0/min'", "3: rate in [keys.ann] must be more than 0"),
    ("[keys.ann]\nsecret = 'env:A'\nstreams = 0",
     "3: streams in [keys.ann] must be a whole number of at least 1, not 0"),
    ("[keys.ann]\nsecret = 'env:A'\nrole = 'root'",
     '3: role in [keys.ann] must be "user" or "admin", not "root"'),
    ("[keys.ann]\nsecret = 'env:A'\nexpires = '90d'",
     '3: expires in [keys.ann] must be a date or a time, such as 2027-01-31 or "2027-01-31T18:00Z"'),
    ("[keys.ann]\nsecret = 'env:A'\nteam = 'a b'",
     '3: team in [keys.ann] is not a valid name: "a b"; a name has'),
    ("[keys.ann]\nsecret = 'file:'", '2: secret in [keys.ann] must name a file after "file:"'),
    ("[keys.'a b']\nsecret = 'env:A'", "1: [keys.a b]: the name is not valid; a name has at most 64 letters"),
    ("[keys]\nann = 'env:A'", '2: "ann" in [keys] must be a table, [keys.ann], not text'),
    ("[teams.sea]\nmodels = 'x'",
     '2: unknown key "models" in [teams.sea]; valid keys are budget, rate, tokens, '),
    ("[limits]\nwhen_unshared = 'ask'",
     '2: when_unshared in [limits] must be "allow" or "refuse", not "ask"'),
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
    ('[[routes]]\nmatch = "a"\nto = [{ target = "groq/x", weight = 1 }, "groq/y"]\nprefer = "reliable"',
     '4: [[routes]] has prefer = "reliable" and targets with weights: remove one of them'),
    ('[[routes]]\nmatch = "a"\nto = "groq/x"\nprefer = "reliabel"',
     '4: prefer in [[routes]] must be "listed" or "reliable", not "reliabel"; did you mean "reliable"?'),
    ('[[routes]]\nmatch = "a"\nto = { weight = 1 }', '3: to in [[routes]] needs "target"'),
    ('[[routes]]\nmatch = "a"\nto = "groq/*/*"', '3: to in [[routes]] has more than one "*" in "groq/*/*"'),
    ('[upstreams.a]\nprovider = "groq"\nmodels = [{ context = 1 }]',
     '3: models in [upstreams.a] needs "name"'),
    ('[search]\nurl = "search.example"',
     '2: url in [search] must begin with "http://" or "https://", not "search.example"'),
    ('[search]\nurl = "http://a"\ncommand = "b"',
     "3: [search] has both url and command: keep one of them"),
    ("[search]\ncommand = []", "2: command in [search] must name a program"),
    ("[search]\ncommand = \"a 'b\"",
     "2: command in [search] cannot be split into words: \"a 'b\": No closing quotation"),
    ("[search]\nmax_uses = 0", "2: max_uses in [search] must be a whole number from 1 to 50, not 0"),
    ('[images]\ndescribe_with = "groq/*"', '2: describe_with in [images] must name a model, not "*"'),
    ('[images]\ndescribe_with = "sees/x"',
     '2: describe_with in [images] names the upstream "sees", which is not configured'),
    ("[tools]\nloops = 1", "2: loops in [tools] must be a table, not a number"),
    ("[tools]\ninvalid = 1", '2: invalid in [tools] must be "pass", "reask" or "error", not a number'),
    ('[upstreams.a]\nprovider = "groq"\nheaders = { x = 1 }',
     '3: headers in [upstreams.a] must set the header "x" to one line of text'),
    ('[upstreams.a]\nprovider = "groq"\nheaders = { x = "1", X = "2" }',
     '3: headers in [upstreams.a] sets the header "X" twice'),
    # upstreams
    ("[upstreams.a]", "1: [upstreams.a] has no protocol: set protocol or provider"),
    ("[upstreams.bedrok]",
     '1: [upstreams.bedrok] has no protocol, and "bedrok" is no known provider; if you mean "bedrock", set '
     'provider = "bedrock"'),
    ("[upstreams.bedrock]",
     '1: [upstreams.bedrock] has no region: set region to the one that your models are in, such as '
     '"us-east-1"'),
    ('[upstreams.bedrock]\nregion = "us east"',
     "2: region in [upstreams.bedrock] must be a name of letters, digits and dashes"),
    ('[upstreams.azure]\nprotocol = "openai-chat"',
     '1: [upstreams.azure] has no base_url: set it to the address of the server, such as '
     '"https://RESOURCE.openai.azure.com"'),
    ('[upstreams.a]\nprotocol = "gemini"', "1: [upstreams.a] has no base_url"),
    ('[upstreams.a]\nprotocol = "openai"\nbase_url = "https://x"',
     '2: protocol in [upstreams.a] must be "anthropic", "openai-chat", "openai-responses", "gemini" or '
     '"bedrock-converse", not '),
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
     '3: [upstreams.a] has no base_url, and the provider "groq" has no known address for "gemini"; set '
     'base_url, or a protocol that it speaks: openai-chat'),
    ('[upstreams."a/b"]\nprovider = "groq"',
     '1: [upstreams.a/b]: the name of an upstream must not be empty or contain "/" or "*"'),
    ('[upstreams.a]\nprovider = "groq"\nheaders = { Host = "x" }',
     '3: headers in [upstreams.a] cannot set the header "Host"'),
    ('[upstreams.a]\nprovider = "groq"\ncredential = 1',
     "3: credential in [upstreams.a] must be text or a table, not a number"),
    ('[upstreams.a]\nprovider = "groq"\ncredential = ["env:A", "env:B"]',
     '3: credential in [upstreams.a] must be text or a table, not a list; several keys are written as '),
    ('[upstreams.a]\nprovider = "groq"\nkeys = ["A"]',
     '3: unknown key "keys" in [upstreams.a]; write credentials = ["env:NAME", "env:OTHER"]'),
    ('[upstreams.a]\nprovider = "groq"\ncredentials = "env:A"',
     "3: credentials in [upstreams.a] must be a list, not text"),
    ('[upstreams.a]\nprovider = "groq"\ncredentials = []',
     "1: [upstreams.a] has an empty list of credentials: add keys, or write"),
    ('[upstreams.a]\nprovider = "groq"\ncredential = "env:A"\ncredentials = ["env:B"]',
     "4: [upstreams.a] has both credential and credentials: keep one of them"),
    ('[upstreams.a]\nprovider = "groq"\ncredentials = [\n  "env:A",\n  "env:A",\n]',
     "5: [upstreams.a] lists env:A twice in credentials"),
    ('[upstreams.a]\nprovider = "groq"\ncredentials = ["env:A", "client"]',
     '3: [upstreams.a] has "client" among several credentials'),
    ('[upstreams.a]\nprovider = "groq"\ncredentials = ["env:A", "envv:B"]',
     "3: credentials in [upstreams.a] cannot be used: "),
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
    ('[[routes]]\nmatch = "a"\nto = "groq/x"\nwhen = { image = true }',
     '4: when in [[routes]] has the unknown key "image"; did you mean "images"?'),
    ('[[routes]]\nmatch = "a"\nto = "groq/x"\nwhen = { images = 1 }',
     "4: when in [[routes]] images must be true or false, not a number"),
    ('[[routes]]\nmatch = "a"\nto = "groq/x"\nwhen = { client = "claude-cod" }',
     '4: when in [[routes]] client names the client "claude-cod", which is unknown; did you mean '),
    ('[[routes]]\nmatch = "a"\nto = "groq/x"\nwhen = { tokens_over = "100k" }',
     "4: when in [[routes]] tokens_over must be a whole number of at least 0, not text"),
    ('[[routes]]\nmatch = "a"\nto = "groq/x"\nwhen = { tools = [] }',
     "4: when in [[routes]] tools must not be an empty list"),
    ('[[routes]]\nto = "groq/x"\nwhen = {}',
     "3: when in [[routes]] must have a condition: client, background, thinking, images, tools, tokens_over"),
    ('[[routes]]\nto = "groq/x"\nwen = { images = true }',
     '3: unknown key "wen" in [[routes]]; did you mean "when"?'),
    ('[[routes]]\nwhen = { images = true }', '1: [[routes]] has no "to"'),
    ('[tiers]\nhuge = "groq/x"', '2: unknown key "huge" in [tiers]; valid keys are small, middle, big'),
    ('[aliases]\nfast = "groqq/x"',
     '2: fast in [aliases] names the upstream "groqq", which is not configured'),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), COMPLAINTS)
def test_each_mistake_has_its_error_message(text: str, expected: str) -> None:
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
def test_invalid_toml_is_an_error_with_its_line(text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loads(text)
    assert caught.value.message.startswith(f"dragoman.toml:{expected}")


def test_all_mistakes_are_reported_in_the_order_of_the_file() -> None:
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
def test_the_error_for_a_misplaced_key_hides_its_value(written: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loads(f'[upstreams.a]\nprovider = "groq"\n{written}')
    assert caught.value.message.startswith("dragoman.toml:3: credential in [upstreams.a] ")
    assert "very" not in repr(caught.value) + caught.value.message


# Any input gives a config or an error message.
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
def test_any_config_is_read_or_refused_with_a_sentence(raw: dict[str, Any]) -> None:
    problems: tuple[str, ...] = ()
    try:
        read(ConfigDocument(raw=raw, shown="dragoman.toml"))
    except ConfigError as error:
        problems = error.problems
    assert all(problem.startswith("dragoman.toml: ") for problem in problems)
