"""Where AWS's temporary credentials come from: a login with SSO, a machine's role, a web identity."""

import hashlib
import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from anthropic import Anthropic, APIStatusError
from botocore.credentials import SSOProvider
from botocore.tokens import SSOTokenProvider
from botocore.utils import ContainerMetadataFetcher
from support import aws
from support.serving import Serve
from support.stand_in import Answer, Sent, StandIn, as_json, standing_in

from dragoman.credentials.aws import AwsReader

ASKED: dict[str, Any] = {
    "max_tokens": 500,
    "model": "bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0",
    "messages": [{"role": "user", "content": "Read a.py"}],
}
LATER = "2099-01-01T00:00:00Z"


def config(cloud: StandIn, more: str = "") -> str:
    # No account's credentials go to an address that is not AWS's unless the config says so.
    credential = "" if "credential" in more else 'credential = "aws"\n'
    return f'[upstreams.bedrock]\nregion = "us-east-1"\nbase_url = "{cloud.url}"\n{credential}{more}'


def ask(url: str) -> None:
    Anthropic(base_url=url, api_key="x", max_retries=0).messages.create(**ASKED)


def moment(seconds: float) -> str:
    """A time that many seconds from now, as AWS writes it."""
    return datetime.fromtimestamp(time.time() + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Login:
    """A login with `aws sso login`, and the portal that gives credentials for it."""

    def __init__(self, home: Path) -> None:
        self.valid, self.access = "a-login", "AKIAFIRST"
        folder = home / ".aws"
        self.cache = folder / "sso" / "cache"
        self.cache.mkdir(parents=True)
        (folder / "config").write_text(
            "[profile work]\nsso_session = corp\nsso_account_id = 123456789012\nsso_role_name = models\n"
            "region = us-east-1\n"
            "[sso-session corp]\nsso_region = us-east-1\nsso_start_url = https://corp.awsapps.com/start\n"
        )

    def write(self, token: str) -> None:
        """What the command `aws sso login` leaves."""
        found = {
            "startUrl": "https://corp.awsapps.com/start",
            "region": "us-east-1",
            "accessToken": token,
            "expiresAt": LATER,
        }
        name = hashlib.sha1(b"corp").hexdigest()
        (self.cache / f"{name}.json").write_text(json.dumps(found))

    def portal(self, sent: Sent) -> Answer:
        if sent.headers.get("x-amz-sso_bearer_token") != self.valid:
            error = {"message": "Session token not found or invalid"}
            return as_json(error, 401, **{"x-amzn-ErrorType": "UnauthorizedException"})
        role = {
            "accessKeyId": self.access,
            "secretAccessKey": aws.KEYS[self.access],
            "sessionToken": f"token-of-{self.access}",
            "expiration": int((time.time() + 3600) * 1000),
        }
        return as_json({"roleCredentials": role})


def test_a_login_with_sso_that_expires_in_the_middle_of_a_session(
    tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the login is over, the error says what to do. After a new login, the next request works."""
    login = Login(tmp_path)
    login.write("a-login")

    def bedrock(sent: Sent) -> Answer:
        if aws.signer(sent, cloud.url) == login.access:
            return aws.bedrock(sent)
        return as_json({"message": "The security token included in the request is expired"}, 403)

    with standing_in(login.portal) as portal, standing_in(bedrock) as cloud:
        monkeypatch.setenv("AWS_ENDPOINT_URL_SSO", portal.url)
        monkeypatch.setattr(AwsReader, "pause", 0.0)
        for place in (SSOProvider, SSOTokenProvider):  # botocore looks at HOME when it is imported
            monkeypatch.setattr(place, "_SSO_TOKEN_CACHE_DIR", str(login.cache))
        with serve(config(cloud, 'credential = { aws = "work" }')) as gateway:
            ask(gateway.url)
            assert "account_id=123456789012" in portal.sent[0].path
            login.valid, login.access = "another-login", "AKIASECOND"
            with pytest.raises(APIStatusError, match="is expired") as caught:
                ask(gateway.url)
            assert caught.value.status_code == 403
            assert "run aws sso login" in caught.value.message
            login.write("another-login")
            ask(gateway.url)
        assert aws.signer(cloud.sent[-1], cloud.url) == "AKIASECOND"


class Machine:
    """The metadata service of a machine in EC2."""

    def __init__(self) -> None:
        self.access, self.expires = "AKIAFIRST", LATER

    def __call__(self, sent: Sent) -> Answer:
        if sent.method == "PUT":
            return Answer(b"a-metadata-token", "text/plain")
        if sent.headers.get("x-aws-ec2-metadata-token") != "a-metadata-token":
            return Answer(b"", status=401)
        if sent.path.rstrip("/").endswith("security-credentials"):
            return Answer(b"models", "text/plain")
        return as_json(self.credentials())

    def credentials(self) -> dict[str, str]:
        return {
            "Code": "Success",
            "Type": "AWS-HMAC",
            "AccessKeyId": self.access,
            "SecretAccessKey": aws.KEYS[self.access],
            "Token": f"token-of-{self.access}",
            "Expiration": self.expires,
            "LastUpdated": moment(-60),
        }


def test_the_role_of_a_machine(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()

    def bedrock(sent: Sent) -> Answer:
        if aws.signer(sent, cloud.url) == machine.access:
            return aws.bedrock(sent)
        return as_json({"message": "The security token included in the request is expired"}, 403)

    with standing_in(machine) as metadata, standing_in(bedrock) as cloud:
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "false")
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata.url)
        with serve(config(cloud)) as gateway:
            ask(gateway.url)
            machine.access = "AKIASECOND"
            ask(gateway.url)
        used = [aws.signer(sent, cloud.url) for sent in cloud.sent]
    assert used == ["AKIAFIRST", "AKIAFIRST", "AKIASECOND"]
    assert cloud.sent[-1].headers["x-amz-security-token"] == "token-of-AKIASECOND"


def test_credentials_of_a_container_are_renewed_before_they_expire(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    role = Machine()
    role.expires = moment(300)  # so soon that botocore wants new ones
    with (
        standing_in(lambda sent: as_json(role.credentials())) as container,
        standing_in(aws.bedrock) as cloud,
    ):
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{container.url}/role")
        with serve(config(cloud)) as gateway:
            ask(gateway.url)
            role.access, role.expires = "AKIASECOND", LATER
            ask(gateway.url)
            count = len(container.sent)
            ask(gateway.url)
            assert len(container.sent) == count
        used = [aws.signer(sent, cloud.url) for sent in cloud.sent]
    assert used == ["AKIAFIRST", "AKIASECOND", "AKIASECOND"]


def test_credentials_that_cannot_be_renewed_yet_are_asked_for_again(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The container's endpoint fails while the old credentials are still valid for some minutes."""
    role = Machine()
    role.expires = moment(780)  # botocore wants new ones, but does without for three minutes more
    broken = False

    def endpoint(sent: Sent) -> Answer:
        return as_json({"code": "x", "message": "later"}, 500) if broken else as_json(role.credentials())

    with standing_in(endpoint) as container, standing_in(aws.bedrock) as cloud:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{container.url}/role")
        monkeypatch.setattr(ContainerMetadataFetcher, "SLEEP_TIME", 0)
        monkeypatch.setattr("dragoman.credentials.aws._OVERDUE", 0.05)
        with serve(config(cloud)) as gateway:
            ask(gateway.url)
            broken = True
            ask(gateway.url)
            broken = False
            role.access, role.expires = "AKIASECOND", LATER
            deadline = time.monotonic() + 20
            while aws.signer(cloud.sent[-1], cloud.url) != "AKIASECOND":
                assert time.monotonic() < deadline
                ask(gateway.url)


def test_a_web_identity(tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod in Kubernetes: the token of its service account is in a file."""
    (tmp_path / "token").write_text("a-pods-token")
    answer = (
        '<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">'
        "<AssumeRoleWithWebIdentityResult><Credentials>"
        f"<AccessKeyId>AKIASECOND</AccessKeyId><SecretAccessKey>{aws.KEYS['AKIASECOND']}</SecretAccessKey>"
        f"<SessionToken>a-pods-session</SessionToken><Expiration>{LATER}</Expiration>"
        "</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
    )
    with (
        standing_in(lambda sent: Answer(answer.encode(), "text/xml")) as sts,
        standing_in(aws.bedrock) as cloud,
    ):
        for name, value in {
            "AWS_ENDPOINT_URL_STS": sts.url,
            "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/models",
            "AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"),
            "AWS_REGION": "us-east-1",
        }.items():
            monkeypatch.setenv(name, value)
        with serve(config(cloud)) as gateway:
            ask(gateway.url)
        assert parse_qs(sts.only.body.decode())["WebIdentityToken"] == ["a-pods-token"]
        assert aws.signer(cloud.sent[0], cloud.url) == "AKIASECOND"
        assert cloud.only.headers["x-amz-security-token"] == "a-pods-session"
