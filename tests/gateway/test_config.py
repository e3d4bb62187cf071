"""The config: the documented example, the search order of files, and reloading."""

from pathlib import Path

import pytest

from dragoman.config import (
    ConfigError,
    find,
    fingerprint,
    from_environment,
    load,
    loads,
    reload,
    user_folder,
    with_server,
)
from dragoman.config.store_address import store_place
from dragoman.config.types import Config
from dragoman.credentials.secret import Secret
from dragoman.model.errors import DragomanError
from dragoman.protocols.common import call_ids
from dragoman.tools.rules import ANSWER_RULES

EXAMPLE = """
[server]
host = "127.0.0.1"
port = 4545
keys = ["env:DRAGOMAN_KEY"]           # needed as soon as host is not loopback

[upstreams.openrouter]
protocol = "openai-chat"              # anthropic | openai-chat | openai-responses | gemini
base_url = "https://openrouter.ai/api/v1"
credential = "env:OPENROUTER_API_KEY" # env:NAME | file:PATH | command:… | client | none | a table

[upstreams.antigravity]
protocol = "openai-chat"
base_url = "http://127.0.0.1:8317/v1"
credential = { sqlite = "~/globalStorage/state.vscdb", key = "antigravityAuthStatus", field = "apiKey" }

[[routes]]
match = "claude-*haiku*"              # glob on the client's model name; first match wins
to = "openrouter/google/gemini-3-flash"

[[routes]]
match = "*"
to = ["antigravity/gemini-3-pro", "openrouter/*"]   # in order; `/*` keeps the client's model name

[tiers]                               # shorthand: small = *haiku*/*mini*/*flash*, middle = *sonnet*, …
big = "antigravity/gemini-3-pro"

[tools]
invalid = "pass"                      # pass | reask | error
off = []                              # rules switched off by name
loops = { note_after = 0, stop_after = 0 }

[clients.cursor]
arguments = "whole"                   # whole | live
"""
LOCAL = '[upstreams.ollama]\n[[routes]]\nmatch = "*"\nto = "ollama/qwen"\n'


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_documented_example() -> None:
    config = loads(EXAMPLE)
    assert (config.server.host, config.server.port) == ("127.0.0.1", 4545)
    assert [str(key) for key in config.keys({"DRAGOMAN_KEY": "k"})] == ["#8254c329"]
    openrouter, antigravity = config.upstreams.values()
    assert openrouter.url("/v1/chat/completions") == "https://openrouter.ai/api/v1/chat/completions"
    assert (openrouter.credential.kind, openrouter.credential.name) == ("env", "OPENROUTER_API_KEY")
    assert (antigravity.credential.kind, antigravity.credential.key) == ("sqlite", "antigravityAuthStatus")
    assert [(r.match, [(t.upstream, t.model) for t in r.to]) for r in config.routes] == [
        ("claude-*haiku*", [("openrouter", "google/gemini-3-flash")]),
        ("*", [("antigravity", "gemini-3-pro"), ("openrouter", "*")]),
    ]
    assert config.tiers.big[0].model == "gemini-3-pro"
    assert config.clients["cursor"].arguments == "whole"
    assert config.warnings == ()


def test_the_values_of_a_config() -> None:
    config = loads(
        """
        server = { workers = 2, max_body = "8MB", max_streams = 5, keepalive = "500ms", shutdown_grace = "1m",
                   retries = 0, store = "x.db", retention = "7d", strict = true, direct = false,
                   allowed_hosts = ["box.lan"], keys = ["literal-key"] }
        [upstreams.me]
        protocol = "openai-chat"
        base_url = "http://10.0.0.2:8000"
        headers = { X-Title = "dragoman" }
        models = ["a", { name = "b", context = 1000, max_output = 100 }]
        connect_timeout = 1
        idle_timeout = "2m"
        ids = "mistral"
        reasoning_field = "reasoning_content"
        auth = "api-key"
        [[routes]]
        match = ["a*", "b*"]
        to = [{ target = "me/a", weight = 3, params = { temperature = 0.2 } }, { target = "me/b" }]
        [aliases]
        fast = "me/a"
        [tools]
        invalid = "reask"
        off = ["code-fence"]
        loops = { note_after = 3, stop_after = 9 }
    """.replace("\n                   ", " ")
    )
    server, me = config.server, config.upstreams["me"]
    assert (server.max_body, server.keepalive, server.retention) == (8 * 1024**2, 0.5, 604_800)
    assert server.store == Path.cwd() / "x.db"
    assert me.headers == {"x-title": "dragoman"}
    assert [(m.name, m.max_output) for m in me.models] == [("a", None), ("b", 100)]
    assert (me.idle_timeout, me.auth) == (120, "api-key")
    target = me.target("a", strict=True)
    assert (target.ids, target.issuer, target.strict) == (call_ids.MISTRAL, "me", True)
    assert target.chat_compatible
    assert target.max_tokens_field == "max_tokens"
    assert [r.match for r in config.routes] == ["a*", "b*"]
    assert config.routes[0].to[0].params == {"temperature": 0.2}
    assert config.aliases["fast"][0].upstream == "me"
    assert config.tools.off == {"code-fence"}
    assert config.tools.loops.stop_after == 9


def test_a_key_is_never_shown() -> None:
    config = loads('server.keys = ["the-very-key"]\n' + LOCAL)
    assert "very" not in repr(config)
    assert config.keys({})[0].reveal() == "the-very-key"


@pytest.mark.parametrize("value", ["", "  "])
def test_a_key_with_an_empty_variable_is_refused(value: str) -> None:
    config = loads('server.keys = ["env:DRAGOMAN_KEY"]\n' + LOCAL)
    with pytest.raises(ConfigError, match="DRAGOMAN_KEY, which is not set"):
        config.keys({"DRAGOMAN_KEY": value})


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "box.lan"])
def test_a_public_host_needs_keys(host: str) -> None:
    with pytest.raises(ConfigError, match=r"^dragoman.toml:1: host .* set keys in \[server\]"):
        loads(f'server.host = "{host}"\n{LOCAL}')
    assert loads(f'server.host = "{host}"\nserver.keys = ["k"]\n{LOCAL}').server.host == host
    with pytest.raises(ConfigError, match="set keys"):
        with_server(loads(LOCAL), host=host)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback_needs_no_keys(host: str) -> None:
    assert with_server(loads(LOCAL), host=host, port=9).server.port == 9


def test_a_gateway_does_not_call_itself() -> None:
    with pytest.raises(ConfigError, match="would call itself"):
        loads('[upstreams.x]\nprotocol = "anthropic"\nbase_url = "http://localhost:4545"')
    with pytest.raises(ConfigError, match="would call itself"):
        with_server(loads(LOCAL), port=11434)


def test_probable_mistakes_give_warnings() -> None:
    config = loads("""
[upstreams.x]
protocol = "openai-chat"
base_url = "http://api.example.com"
credential = "env:KEY"
region = "us-east-1"
[[routes]]
match = ["a", "b", "*"]
to = "x/*"
[[routes]]
match = "late-*"
to = "x/*"
[upstreams.azure]
base_url = "https://r.openai.azure.com"
api_version = "2024-10-21"
[upstreams.signed]
protocol = "anthropic"
base_url = "https://bedrock.example.com"
credential = "aws"
region = "us-east-1"
""")
    assert config.warnings == (
        "dragoman.toml:4: [upstreams.x] sends its credential over unencrypted http; use https",
        'dragoman.toml:6: region in [upstreams.x] has no effect; it is for provider = "bedrock" or '
        '"bedrock-mantle"',
        'dragoman.toml:10: the route for "late-*" is never reached: "*" comes before it',
        "dragoman.toml:15: api_version in [upstreams.azure] has no effect; it is for provider = "
        '"azure-deployments"',
    )


# Search order


def test_the_search_order_of_config_files(tmp_path: Path) -> None:
    home, here = tmp_path / "home", tmp_path / "here"
    here.mkdir()
    env = {"HOME": str(home), "XDG_CONFIG_HOME": ""}
    assert find(None, env, here) is None
    user = write(home / ".config/dragoman/dragoman.toml", "")
    assert find(None, env, here) == user
    xdg = write(tmp_path / "xdg/dragoman/dragoman.toml", "")
    env["XDG_CONFIG_HOME"] = str(tmp_path / "xdg")
    assert find(None, env, here) == xdg
    local = write(here / "dragoman.toml", "")
    assert find(None, env, here) == local
    variable = write(tmp_path / "variable.toml", "")
    env["DRAGOMAN_CONFIG"] = str(variable)
    assert find(None, env, here) == variable
    option = write(here / "option.toml", "")
    assert find("option.toml", env, here) == option


def test_the_users_folder_on_other_systems(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "APPDATA": str(tmp_path / "AppData")}
    assert user_folder(env, "win32") == tmp_path / "AppData" / "dragoman"
    assert user_folder(env, "darwin") == tmp_path / ".config" / "dragoman"
    library = write(tmp_path / "Library" / "Application Support" / "dragoman" / "dragoman.toml", "").parent
    assert user_folder(env, "darwin") == library


@pytest.mark.parametrize(("path", "env"), [("no.toml", {}), (None, {"DRAGOMAN_CONFIG": "no.toml"})])
def test_a_named_file_must_exist(path: str | None, env: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"names the file no.toml, which does not exist"):
        find(path, env, tmp_path)


def test_a_file_without_upstreams_takes_those_of_the_environment(tmp_path: Path) -> None:
    file = write(tmp_path / "dragoman.toml", "[server]\nport = 5\n")
    config = load(file, {"GROQ_API_KEY": "k"})
    assert (config.server.port, [*config.upstreams]) == (5, ["groq"])


def test_an_unreadable_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path / "no.toml")
    file = tmp_path / "dragoman.toml"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load(file)
    file.write_bytes(b"\xef\xbb\xbf" + LOCAL.replace("\n", "\r\n").encode())
    assert [*load(file).upstreams] == ["ollama"]


def test_paths_are_relative_to_the_config(tmp_path: Path) -> None:
    text = '[upstreams.ollama]\ncredential = "file:key.txt"\n[server]\nstore = "~/x.db"'
    config = load(write(tmp_path / "dragoman.toml", text))
    assert config.upstreams["ollama"].credential.path == str(tmp_path / "key.txt")
    assert config.server.store == Path.home() / "x.db"


# Reloading


def changed(file: Path, text: str, config: Config) -> tuple[Config, bool, str]:
    write(file, text)
    result = reload(config, {})
    return result.config, result.changed, result.message


def test_reload(tmp_path: Path) -> None:
    file = tmp_path / "dragoman.toml"
    assert fingerprint(file) is None
    old = load(write(file, LOCAL))
    seen = fingerprint(file)
    new, did_change, _ = changed(file, LOCAL.replace("qwen", "glm"), old)
    assert did_change
    assert new.routes[0].to[0].model == "glm"
    assert fingerprint(file) != seen
    assert not changed(file, LOCAL.replace("qwen", "glm"), new)[1]


@pytest.mark.parametrize(
    "bad", ["[[routes]", '[upstreams.ollama]\nprot = "x"', "server.keys = ['env:NO']\n" + LOCAL]
)
def test_a_bad_change_leaves_the_old_config(tmp_path: Path, bad: str) -> None:
    file = tmp_path / "dragoman.toml"
    old = load(write(file, LOCAL))
    new, did_change, message = changed(file, bad, old)
    assert new is old
    assert not did_change
    assert message.startswith("the old config stays in use: ")
    file.unlink()
    assert reload(old, {}).config is old


def test_settings_that_need_a_restart_are_kept_and_reported(tmp_path: Path) -> None:
    file = tmp_path / "dragoman.toml"
    old = with_server(load(write(file, LOCAL)), port=7777)
    new, _, message = changed(file, "server.workers = 3\n" + LOCAL, old)
    assert (new.server.port, new.server.workers) == (7777, 1)
    assert message.endswith("a change of server.port, server.workers needs a restart")


def test_a_reload_cannot_remove_the_keys_of_a_public_host(tmp_path: Path) -> None:
    file = tmp_path / "dragoman.toml"
    old = with_server(load(write(file, "server.keys = ['k']\n" + LOCAL)), host="0.0.0.0")
    new, _, message = changed(file, LOCAL, old)
    assert new is old
    assert "set keys" in message


def test_a_reload_does_not_read_the_environment_again() -> None:
    config = from_environment({"GROQ_API_KEY": "k"})
    assert reload(config).config is config


def test_rules_about_answers_can_be_switched_off_too() -> None:
    off = [*ANSWER_RULES]
    config = loads(f"[upstreams.groq]\n[tools]\noff = {off}", env={})
    assert config.tools.off == set(off)


@pytest.mark.parametrize(
    ("written", "env", "place"),
    [
        ("/data/store.db", {}, Path("/data/store.db")),
        ("postgresql://u:p@db/x", {}, Secret("postgresql://u:p@db/x")),
        ("env:STORE", {"STORE": " postgres://db/x\n"}, Secret("postgres://db/x")),
        ("env:STORE", {"STORE": "/data/other.db"}, Path("/data/other.db")),
        ("file:address", {}, Secret("postgresql://in-a-file")),
    ],
)
def test_where_the_store_is(tmp_path: Path, written: str, env: dict[str, str], place: Path | Secret) -> None:
    (tmp_path / "address").write_text("postgresql://in-a-file\n")
    file = tmp_path / "dragoman.toml"
    file.write_text(f'[server]\nstore = "{written}"\n[upstreams.ollama]\n')
    assert store_place(load(file).server.store, env) == place


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("env:", 'must name a variable after "env:"'),
        ("file: ", 'must name a file after "file:"'),
        ("mysql://u:geheim@db/x", "must be a path, or an address that begins with postgresql://"),
    ],
)
def test_a_store_that_cannot_be(written: str, says: str) -> None:
    with pytest.raises(ConfigError) as raised:
        loads(f'[server]\nstore = "{written}"\n[upstreams.ollama]\n', env={})
    assert says in raised.value.message
    assert "geheim" not in raised.value.message


@pytest.mark.parametrize(
    ("written", "says"),
    [("env:NOWHERE", "environment variable NOWHERE, which is not set"), ("file:gone", "cannot be read")],
)
def test_an_address_of_the_store_that_is_not_there(written: str, says: str) -> None:
    config = loads(f'[server]\nstore = "{written}"\n[upstreams.ollama]\n', env={})
    with pytest.raises(DragomanError, match=says):
        store_place(config.server.store, {})


def test_a_config_with_an_address_of_a_database_does_not_show_its_password() -> None:
    config = loads('[server]\nstore = "postgresql://u:geheim@db/x"\n[upstreams.ollama]\n', env={})
    assert "geheim" not in f"{config} {config!r}"
