"""AWS's credential chain: where botocore finds credentials, and what happens when they change or expire."""

import json
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic, APIStatusError
from support import aws
from support.plain_http import call
from support.serving import Serve
from support.stand_in import Answer, Sent, StandIn, as_json, standing_in

ASKED: dict[str, Any] = {
    "max_tokens": 500,
    "model": "bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0",
    "messages": [{"role": "user", "content": "Read a.py"}],
}


def config(cloud: StandIn, more: str = "") -> str:
    # No account's credentials go to an address that is not AWS's unless the config says so.
    credential = "" if "credential" in more else 'credential = "aws"\n'
    return f'[upstreams.bedrock]\nregion = "us-east-1"\nbase_url = "{cloud.url}"\n{credential}{more}'


def ask(url: str) -> None:
    Anthropic(base_url=url, api_key="x", max_retries=0).messages.create(**ASKED)


def issued(access: str) -> Answer:
    """What the endpoint of a container role answers."""
    return as_json(
        {
            "AccessKeyId": access,
            "SecretAccessKey": aws.KEYS[access],
            "Token": f"token-of-{access}",
            "Expiration": "2099-01-01T00:00:00Z",
        }
    )


def profile(folder: Path, name: str, access: str) -> None:
    (folder / ".aws").mkdir(exist_ok=True)
    text = f"[{name}]\naws_access_key_id = {access}\naws_secret_access_key = {aws.KEYS[access]}\n"
    (folder / ".aws" / "credentials").write_text(text)


def test_a_rotated_profile_is_used_with_the_next_request(tmp_path: Path, serve: Serve) -> None:
    profile(tmp_path, "default", "AKIAFIRST")
    with standing_in(aws.bedrock) as cloud, serve(config(cloud)) as gateway:
        ask(gateway.url)
        profile(tmp_path, "default", "AKIASECOND")
        ask(gateway.url)
        assert [aws.signer(sent, cloud.url) for sent in cloud.sent] == ["AKIAFIRST", "AKIASECOND"]


def test_a_profile_that_a_program_fills(tmp_path: Path, serve: Serve) -> None:
    (tmp_path / ".aws").mkdir()
    printed = {"Version": 1, "AccessKeyId": "AKIASECOND", "SecretAccessKey": aws.KEYS["AKIASECOND"]}
    (tmp_path / "print.py").write_text(f"print({json.dumps(json.dumps(printed))})")
    program = f"credential_process = {sys.executable} {tmp_path}/print.py"
    (tmp_path / ".aws" / "config").write_text(f"[profile work]\n{program}\nregion = eu-west-1\n")
    with standing_in(aws.bedrock) as cloud, serve(config(cloud, 'credential = { aws = "work" }')) as gateway:
        ask(gateway.url)
        assert aws.signer(cloud.only, cloud.url) == "AKIASECOND"


def test_an_assumed_role(tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    profile(tmp_path, "base", "AKIAFIRST")
    role = "role_arn = arn:aws:iam::123456789012:role/models\nsource_profile = base\nregion = us-east-1\n"
    (tmp_path / ".aws" / "config").write_text(f"[profile work]\n{role}")
    answer = (
        '<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>'
        f"<AccessKeyId>AKIASECOND</AccessKeyId><SecretAccessKey>{aws.KEYS['AKIASECOND']}</SecretAccessKey>"
        "<SessionToken>a-role-token</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration>"
        "</Credentials></AssumeRoleResult></AssumeRoleResponse>"
    )
    with (
        standing_in(lambda sent: Answer(answer.encode(), "text/xml")) as sts,
        standing_in(aws.bedrock) as cloud,
    ):
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", sts.url)
        with serve(config(cloud, 'credential = { aws = "work" }')) as gateway:
            ask(gateway.url)
        assert aws.signer(cloud.sent[0], cloud.url) == "AKIASECOND"
        assert cloud.only.headers["x-amz-security-token"] == "a-role-token"
        assert aws.signer(sts.only, sts.url, service="sts") == "AKIAFIRST"


def test_expired_credentials_are_replaced_in_the_middle_of_a_session(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client notices nothing: Dragoman asks the container's endpoint again, once, and signs anew."""
    valid = "AKIAFIRST"

    def bedrock(sent: Sent) -> Answer:
        if aws.signer(sent, cloud.url) == valid:
            return aws.bedrock(sent)
        return as_json({"message": "The security token included in the request is expired"}, 403)

    with standing_in(lambda sent: issued(valid)) as container, standing_in(bedrock) as cloud:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{container.url}/role")
        with serve(config(cloud)) as gateway:
            ask(gateway.url)
            ask(gateway.url)
            assert len(container.sent) == 1
            valid = "AKIASECOND"
            ask(gateway.url)
            ask(gateway.url)
        used = [aws.signer(sent, cloud.url) for sent in cloud.sent]
        assert used == ["AKIAFIRST", "AKIAFIRST", "AKIAFIRST", "AKIASECOND", "AKIASECOND"]
        assert len(container.sent) == 2


def test_credentials_that_stay_refused_are_an_error(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = {"message": "User is not authorized to perform: bedrock:InvokeModel"}
    with (
        standing_in(lambda sent: issued("AKIAFIRST")) as container,
        standing_in(lambda sent: as_json(refusal, 403)) as cloud,
    ):
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{container.url}/role")
        with serve(config(cloud)) as gateway, pytest.raises(APIStatusError) as caught:
            ask(gateway.url)
        assert caught.value.status_code == 403
        assert "bedrock:InvokeModel" in caught.value.message
        assert len(cloud.sent) == 2


def test_the_gateway_answers_while_credentials_are_awaited(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, released = threading.Event(), threading.Event()

    def slow(sent: Sent) -> Answer:
        asked.set()
        released.wait(30)
        return issued("AKIAFIRST")

    with standing_in(slow) as container, standing_in(aws.bedrock) as cloud:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{container.url}/role")
        with serve(config(cloud)) as gateway:
            waiting = gateway.loop.begin(gateway.ask("/v1/messages", ASKED))
            assert asked.wait(30)
            assert call(f"{gateway.url}/healthz").status == 200
            assert not waiting.done()
            released.set()
            assert waiting.result(30)[0] == 200


def test_no_credentials_at_all(serve: Serve) -> None:
    with (
        standing_in(aws.bedrock) as cloud,
        serve(config(cloud)) as gateway,
        pytest.raises(APIStatusError, match="aws sso login") as caught,
    ):
        ask(gateway.url)
    assert (caught.value.status_code, cloud.sent) == (503, [])


def test_no_region(tmp_path: Path, serve: Serve) -> None:
    profile(tmp_path, "default", "AKIAFIRST")
    with standing_in(aws.bedrock) as cloud:
        text = f'[upstreams.bedrock]\nprotocol = "anthropic"\nbase_url = "{cloud.url}"\ncredential = "aws"\n'
        with serve(text) as gateway, pytest.raises(APIStatusError, match="set `region` of the upstream"):
            ask(gateway.url)


@pytest.mark.parametrize(
    ("credential", "library", "extra"),
    [
        ("aws", "botocore.session", "bedrock"),
        ("google", "google.auth", "vertex"),
        ("entra", "azure.identity", "azure"),
    ],
)
def test_a_missing_library_says_what_to_install(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, credential: str, library: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with standing_in(aws.bedrock) as cloud:
        text = f'[upstreams.bedrock]\nprotocol = "anthropic"\nbase_url = "{cloud.url}"\n'
        with (
            serve(f'{text}credential = "{credential}"') as gateway,
            pytest.raises(APIStatusError, match=rf"pip install 'dragoman\[{extra}\]'"),
        ):
            ask(gateway.url)


def test_no_secret_of_aws_is_shown(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAFIRST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", aws.KEYS["AKIAFIRST"])
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a-session-token")
    quoting = as_json({"message": "a-session-token is expired"}, 400)
    with standing_in(lambda sent: quoting) as cloud, serve(config(cloud)) as gateway:
        with pytest.raises(APIStatusError) as caught:
            ask(gateway.url)
        assert "a-session-token" in cloud.sent[0].headers.values()
        exchange = caught.value.response.headers["x-dragoman-exchange"]
        receipt = call(f"{gateway.url}/exchanges/{exchange}")
    assert receipt.status == 200
    shown = caught.value.message.encode() + receipt.body
    for secret in ("a-session-token", aws.KEYS["AKIAFIRST"], "AKIAFIRST"):
        assert secret.encode() not in shown


def test_several_accounts_are_several_keys(tmp_path: Path, serve: Serve) -> None:
    """A quota of one account is used up: the other one is asked at once, and from then on."""
    profiles = {"one": "AKIAFIRST", "two": "AKIASECOND"}
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(
        "".join(
            f"[{name}]\naws_access_key_id = {key}\naws_secret_access_key = {aws.KEYS[key]}\n"
            for name, key in profiles.items()
        )
    )

    def bedrock(sent: Sent) -> Answer:
        if aws.signer(sent, cloud.url) == "AKIAFIRST":
            return as_json({"message": "Too many tokens per day, please wait before trying again."}, 429)
        return aws.bedrock(sent)

    with standing_in(bedrock) as cloud:
        keys = 'credentials = [{ aws = "one" }, { aws = "two" }]'
        with serve(config(cloud, keys)) as gateway:
            for number in range(6):
                asked = {**ASKED, "messages": [{"role": "user", "content": f"Conversation {number}"}]}
                status, _ = gateway.loop.run(gateway.ask("/v1/messages", asked))
                assert status == 200
        used = [aws.signer(sent, cloud.url) for sent in cloud.sent]
    assert used.count("AKIASECOND") == 6
    assert used.count("AKIAFIRST") <= 1
