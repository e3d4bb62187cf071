"""How a credential is written in the config."""

from typing import Any

import pytest

from dragoman.credentials import CredentialSpec, parse
from dragoman.credentials.secret import Secret


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("none", CredentialSpec(kind="none")),
        ("client", CredentialSpec(kind="client")),
        ("env:KEY", CredentialSpec(kind="env", name="KEY")),
        ({"env": "KEY"}, CredentialSpec(kind="env", name="KEY")),
        ("file:~/key.txt", CredentialSpec(kind="file", path="~/key.txt")),
        (r"file:C:\keys\a b.txt", CredentialSpec(kind="file", path=r"C:\keys\a b.txt")),
        ({"file": "k.json", "field": "a.b"}, CredentialSpec(kind="file", path="k.json", field="a.b")),
        ("command:pass show 'my key'", CredentialSpec(kind="command", command=("pass", "show", "my key"))),
        (
            {"command": ["gcloud", "print"], "ttl": 60, "timeout": 5},
            CredentialSpec(kind="command", command=("gcloud", "print"), ttl=60.0, timeout=5.0),
        ),
        (
            {"sqlite": "~/state.vscdb", "key": "antigravityAuthStatus", "field": "apiKey"},
            CredentialSpec(kind="sqlite", path="~/state.vscdb", key="antigravityAuthStatus", field="apiKey"),
        ),
        (
            {
                "oauth": "~/creds.json",
                "token_url": "https://auth.example/token",
                "client_id": "id",
                "client_secret": "hidden",
                "body": "json",
                "write_back": True,
            },
            CredentialSpec(
                kind="oauth",
                path="~/creds.json",
                token_url="https://auth.example/token",
                client_id="id",
                client_secret=Secret("hidden"),
                body="json",
                write_back=True,
            ),
        ),
        (
            {"oauth": "c", "token_url": "http://127.0.0.1:9/token", "client_secret": "env:HIDDEN"},
            CredentialSpec(
                kind="oauth", path="c", token_url="http://127.0.0.1:9/token", client_secret_env="HIDDEN"
            ),
        ),
    ],
)
def test_every_documented_form_is_read(written: str | dict[str, Any], meant: CredentialSpec) -> None:
    assert parse(written) == meant
    assert hash(parse(written)) == hash(meant)


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("sk-proj-hidden", "do not write the key itself into the config"),
        ("key:sk-hidden", "a credential is env:NAME"),
        ("client:x", "a credential is env:NAME"),
        ("env:sk-hidden", "`env` takes the name of an environment variable"),
        ("env:", "`env` takes the name"),
        ("file:", "`file` of a credential must be a non-empty text"),
        ("command:", "`command` of a credential must be a command line"),
        ("command:echo 'hidden", "an unclosed quote"),
        ("sqlite:x", "a sqlite credential is a table"),
        ("oauth:x", "an oauth credential is a table"),
        ({}, "a credential has exactly one source"),
        ({"env": "A", "file": "b"}, "a credential has exactly one source"),
        ({"file": "k", "feild": "a"}, "`feild` is not an option of a file credential; did you mean `field`?"),
        ({"env": "A", "ttl": 5}, "`ttl` is not an option of an env credential; it takes `env`"),
        ({"file": 3}, "`file` of a credential must be a non-empty text"),
        ({"sqlite": "s"}, "a sqlite credential needs `key`"),
        ({"command": [1]}, "list of words"),
        ({"command": ["a"], "env": "HOME"}, "`env` of a command credential is a list of names"),
        ({"command": ["a"], "env": ["A=hidden"]}, "`env` of a command credential is a list of names"),
        ({"command": ["a"], "ttl": 0}, "`ttl` of a credential must be a number of seconds above zero"),
        ({"command": ["a"], "ttl": True}, "`ttl` of a credential must be a number"),
        (
            {"oauth": "o", "token_url": "http://auth.example/t"},
            "`token_url` of an oauth credential must be https",
        ),
        ({"oauth": "o", "token_url": "nonsense"}, "must be an https"),
        ({"oauth": "o", "token_url": 3}, "`token_url` must be a text"),
        ({"oauth": "o", "body": "xml"}, '"form" or "json"'),
        ({"oauth": "o", "write_back": "yes"}, "`write_back` of a credential must be true or false"),
        ({"oauth": "o", "write_back": True}, "`write_back` needs `token_url`"),
    ],
)
def test_an_error_is_one_sentence_without_the_value(written: str | dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        parse(written)
    said = str(caught.value)
    assert sentence.replace("must be https", "must be an https") in said
    assert "hidden" not in said
    assert "\n" not in said


def test_the_repr_of_a_spec_hides_arguments() -> None:
    spec = parse({"command": ["/opt/fetch", "--password", "hidden"]})
    assert repr(spec) == "CredentialSpec(command:/opt/fetch)"
    assert parse("client").description == "client"
    assert "hidden" not in repr(parse({"oauth": "o", "client_secret": "hidden"}))
