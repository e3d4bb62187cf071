"""The files in `deploy/` fit the gateway. They are parsed, because tests have no container runtime."""

import ast
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.go_templates import Chart
from support.plain_http import call
from support.processes import dragoman

from dragoman import __version__
from dragoman.config import ConfigError, loads
from dragoman.config.secret_reference import SecretReference
from dragoman.config.types import ServerConfig

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
HELM = DEPLOY / "helm" / "dragoman"
ENV = {"DRAGOMAN_KEY": "k", "OPENROUTER_API_KEY": "sk"}


def stages() -> list[list[tuple[str, str]]]:
    """The Containerfile's instructions, by stage."""
    text = re.sub(r"^#.*\n", "", (DEPLOY / "Containerfile").read_text(), flags=re.MULTILINE).replace(
        "\\\n", " "
    )
    found: list[list[tuple[str, str]]] = []
    for line in filter(str.strip, text.splitlines()):
        word, _, rest = line.partition(" ")
        assert word.isupper(), line
        if word == "FROM":
            found.append([])
        found[-1].append((word, " ".join(rest.split())))
    return found


def test_every_stage_uses_the_same_python_image() -> None:
    images = {dict(stage)["FROM"].split()[0] for stage in stages()}
    assert len(images) == 1
    [version] = re.findall(r"^python:3\.(\d+)-slim$", images.pop())
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert int(version) >= int(wanted.removeprefix(">=3."))


def test_the_build_copies_existing_files_that_are_not_ignored() -> None:
    allowed = {
        line[1:] for line in (DEPLOY / "Containerfile.dockerignore").read_text().split() if line[0] == "!"
    }
    copied = [
        source
        for stage in stages()
        for word, rest in stage
        if word == "COPY" and not rest.startswith("--from")
        for source in rest.split()[:-1]
    ]
    assert set(copied) == allowed
    assert [source for source in copied if not (ROOT / source).exists()] == []


def test_the_image_runs_as_an_unprivileged_user_with_state_in_a_volume() -> None:
    last = dict(stages()[-1])
    uid = last["USER"]
    assert int(uid) > 0
    assert f"--uid {uid} " in last["RUN"]
    assert last["VOLUME"] == last["WORKDIR"] == "/data"
    assert last["EXPOSE"] == str(ServerConfig().port)
    words = [word for word, _ in stages()[-1]]
    assert words.index("RUN") < words.index("USER") < words.index("ENTRYPOINT")
    assert "curl" not in str(stages())


def test_the_image_finds_its_config_and_command() -> None:
    last = dict(stages()[-1])
    variables = dict(item.split("=", 1) for item in shlex.split(last["ENV"]))
    assert f"deploy/dragoman.toml {variables['DRAGOMAN_CONFIG']}" in [
        rest for word, rest in stages()[-1] if word == "COPY"
    ]
    [folder] = [rest.split()[-1] for word, rest in stages()[0] if "-m venv" in rest]
    assert variables["PATH"].startswith(f"{folder}/bin:")
    assert (ast.literal_eval(last["ENTRYPOINT"]), ast.literal_eval(last["CMD"])) == (["dragoman"], ["serve"])


def test_the_health_check_fails_without_a_gateway(tmp_path: Path) -> None:
    import subprocess
    import sys

    command = ast.literal_eval(dict(stages()[-1])["HEALTHCHECK"].partition("CMD ")[2])
    assert command[0] == "python"
    with dragoman(tmp_path, "demo", "--port", "0") as gateway:
        url = gateway.ready()
        code = command[2].replace("http://127.0.0.1:4545", url)
        assert url in code
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 1


def test_the_config_in_the_image_takes_keys_from_the_environment(tmp_path: Path) -> None:
    text = (DEPLOY / "dragoman.toml").read_text()
    config = loads(text, env=ENV)
    assert list(config.upstreams) == ["openrouter"]
    assert config.server.store == Path("/data/dragoman.db")
    with pytest.raises(ConfigError, match="DRAGOMAN_KEY"):
        config.keys({})
    here = text.replace("/data/", f"{tmp_path}/").replace("[server]", "[server]\nport = 0")
    (tmp_path / "dragoman.toml").write_text(here)
    with dragoman(tmp_path, "serve", **ENV) as process:
        url = process.ready().replace("0.0.0.0", "127.0.0.1")
        assert call(f"{url}/healthz").status == 200
        assert call(f"{url}/v1/models").status == 401


def test_compose_builds_the_image_and_passes_keys_on() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    service = compose["services"]["dragoman"]
    assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
    assert service["ports"] == ["127.0.0.1:4545:4545"]
    assert [volume.partition(":")[0] for volume in service["volumes"]] == list(compose["volumes"])
    assert service["environment"].pop("DRAGOMAN_KEY").startswith("${DRAGOMAN_KEY:?")
    assert set(service["environment"].values()) == {None}  # taken from the shell, never written to the file
    assert list(loads("", env=dict.fromkeys(service["environment"], "k")).upstreams)
    assert int(service["stop_grace_period"].removesuffix("s")) > ServerConfig().shutdown_grace


def test_compose_for_a_team_shares_the_services_and_keeps_secrets_in_files(tmp_path: Path) -> None:
    compose = yaml.safe_load((DEPLOY / "team" / "compose.yaml").read_text())
    gateway, balancer = compose["services"]["gateway"], compose["services"]["balancer"]
    folder = DEPLOY / "team"
    assert (folder / gateway["build"]["context"] / gateway["build"]["dockerfile"]).is_file()
    assert gateway["deploy"]["replicas"] > 1
    assert "ports" not in gateway
    assert balancer["ports"] == ["127.0.0.1:4545:4545"]
    mounted = [volume.split(":") for service in (gateway, balancer) for volume in service["volumes"]]
    assert all((folder / source).is_file() for source, _, _ in mounted)
    assert (
        mounted[0][1]
        == dict(item.split("=", 1) for item in shlex.split(dict(stages()[-1])["ENV"]))["DRAGOMAN_CONFIG"]
    )
    assert set(gateway["environment"].values()) == {None}

    config = loads((folder / "dragoman.toml").read_text(), env=ENV)
    server = config.server
    assert isinstance(server.store, SecretReference)
    assert server.redis is not None
    assert server.host == "0.0.0.0"
    named = [server.store.file, server.redis.file, *(key.file for key in server.keys)]
    assert {str(file) for file in named} == {f"/run/secrets/{name}" for name in gateway["secrets"]}
    grace = int(gateway["stop_grace_period"].removesuffix("s"))
    assert grace > server.shutdown_delay + server.shutdown_grace
    assert "/readyz" in gateway["healthcheck"]["test"][-1]
    for service in compose["services"].values():
        assert {*service.get("secrets", ())} <= compose["secrets"].keys()
    assert set(gateway["depends_on"]) == {"postgres", "valkey"}


def test_the_secrets_of_a_team_fit_the_services(tmp_path: Path) -> None:
    import subprocess

    script = tmp_path / "secrets.sh"
    script.write_bytes((DEPLOY / "team" / "secrets.sh").read_bytes())
    for _ in range(2):  # the second time changes nothing
        subprocess.run(["sh", str(script)], check=True)
        made = {file.name: file.read_text() for file in (tmp_path / "secrets").iterdir()}
    compose = yaml.safe_load((DEPLOY / "team" / "compose.yaml").read_text())
    assert {f"./secrets/{name}" for name in made} == {each["file"] for each in compose["secrets"].values()}
    assert made["store"] == f"postgresql://dragoman:{made['postgres_password']}@postgres/dragoman"
    assert made["redis"] == f"redis://:{made['valkey_password']}@valkey:6379/0"
    assert len({*made.values()}) == len(made)
    assert (tmp_path / "secrets").stat().st_mode & 0o077 == 0
    assert "secrets/" in (DEPLOY / "team" / ".gitignore").read_text()


def test_the_balancer_neither_buffers_nor_sends_twice() -> None:
    conf = (DEPLOY / "team" / "nginx.conf").read_text()
    assert "proxy_buffering off;" in conf
    assert "proxy_next_upstream error timeout;" in conf
    assert "proxy_set_header Upgrade $http_upgrade;" in conf  # WebSockets
    assert f"server gateway:{ServerConfig().port} resolve" in conf
    size = re.search(r"client_max_body_size (\d+)m;", conf)
    assert size is not None
    assert int(size[1]) * 1024 * 1024 >= ServerConfig().max_body


def rendered(**changed: Any) -> dict[str, Any]:
    """The chart's objects, by kind; those of PostgreSQL and Valkey by kind and name."""
    about = yaml.safe_load((HELM / "Chart.yaml").read_text())
    assert about["appVersion"] == __version__
    values = {**yaml.safe_load((HELM / "values.yaml").read_text()), **changed}
    helpers = (HELM / "templates" / "_names.tpl").read_text()
    chart = Chart(helpers, Values=values, Release={"Name": "our"}, Chart={"AppVersion": about["appVersion"]})
    found = [yaml.safe_load(chart.render(file.read_text())) for file in sorted(HELM.glob("templates/*.yaml"))]
    things = [thing for thing in found if thing is not None]
    return {_called(thing["kind"], thing["metadata"]["name"]): thing for thing in things}


def _called(kind: str, name: str) -> str:
    return kind if name == "our-dragoman" else f"{kind} {name.removeprefix('our-dragoman-')}"


def for_a_team() -> dict[str, Any]:
    return rendered(**yaml.safe_load((HELM / "values-team.yaml").read_text()))


def test_the_chart_for_a_team_shares_the_services() -> None:
    things = for_a_team()
    stateful, service = things["StatefulSet"]["spec"], things["Service"]["spec"]
    assert stateful["replicas"] > 1
    assert "volumeClaimTemplates" not in stateful
    assert "sessionAffinity" not in service
    pod = stateful["template"]["spec"]
    [container] = pod["containers"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts.keys() == {volume["name"] for volume in pod["volumes"]}
    config = loads(things["ConfigMap"]["data"]["dragoman.toml"], env=ENV)
    server = config.server
    assert isinstance(server.store, SecretReference)
    assert server.redis is not None
    assert {str(server.store.file), str(server.redis.file)} == {
        f"{mounts['shared']}/store",
        f"{mounts['shared']}/redis",
    }
    assert pod["terminationGracePeriodSeconds"] > server.shutdown_delay + server.shutdown_grace
    for name, port in (("postgres", 5432), ("valkey", 6379)):
        made = things[f"StatefulSet {name}" if name == "postgres" else f"Deployment {name}"]
        assert things[f"Service {name}"]["spec"]["ports"][0]["port"] == port
        assert things[f"Service {name}"]["spec"]["selector"] == made["spec"]["template"]["metadata"]["labels"]
        [volume] = made["spec"]["template"]["spec"]["volumes"]
        assert volume["secret"]["secretName"] == "dragoman-shared"
        assert f"{name}-password" in str(made["spec"]["template"]["spec"]["containers"])


def test_the_chart_runs_the_image() -> None:
    things = rendered(replicas=3)
    assert set(things) == {"ConfigMap", "PodDisruptionBudget", "Service", "StatefulSet"}
    budget = things["PodDisruptionBudget"]["spec"]
    assert budget["maxUnavailable"] == 1
    assert budget["selector"] == things["StatefulSet"]["spec"]["selector"]
    spec = things["StatefulSet"]["spec"]
    pod = spec["template"]["spec"]
    [container] = pod["containers"]
    image = dict(stages()[-1])
    assert spec["replicas"] == 3
    assert container["image"] == f"dragoman:{__version__}"
    assert str(pod["securityContext"]["runAsUser"]) == image["USER"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts == {"/etc/dragoman", image["VOLUME"], "/tmp"}
    assert {"config", "tmp", "state"} == {
        *(volume["name"] for volume in pod["volumes"]),
        *(claim["metadata"]["name"] for claim in spec["volumeClaimTemplates"]),
    }
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
    assert spec["updateStrategy"]["type"] == "RollingUpdate"
    assert container["ports"][0]["containerPort"] == int(image["EXPOSE"])
    server = loads(things["ConfigMap"]["data"]["dragoman.toml"], env=ENV).server
    assert server.shutdown_delay > 0
    assert pod["terminationGracePeriodSeconds"] > server.shutdown_delay + server.shutdown_grace


def test_the_chart_has_session_affinity_and_keeps_keys_in_a_secret() -> None:
    things = rendered()
    service, stateful = things["Service"]["spec"], things["StatefulSet"]["spec"]
    assert service["sessionAffinity"] == "ClientIP"
    assert (
        service["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"] <= 86_400
    )  # the values that Kubernetes accepts
    labels = stateful["template"]["metadata"]["labels"]
    assert service["selector"] == labels == stateful["selector"]["matchLabels"]
    assert stateful["replicas"] == 1
    assert stateful["template"]["spec"]["containers"][0]["envFrom"] == [{"secretRef": {"name": "dragoman"}}]
    config = loads(things["ConfigMap"]["data"]["dragoman.toml"], env=ENV)
    assert config.keys(ENV)
    assert config.server.store == Path("/data/dragoman.db")


def test_the_ingress_sends_each_key_to_one_replica() -> None:
    values = yaml.safe_load((HELM / "values.yaml").read_text())["ingress"]
    ingress = rendered(ingress={**values, "enabled": True, "tlsSecret": "cert"})["Ingress"]
    hashed = ingress["metadata"]["annotations"]["nginx.ingress.kubernetes.io/upstream-hash-by"]
    assert {"authorization", "x_api_key", "x_goog_api_key"} <= set(
        re.findall(r"\$http_(\w+?)(?=\$|$)", hashed)
    )
    assert ingress["spec"]["tls"] == [{"hosts": ["llm.example.net"], "secretName": "cert"}]
    assert ingress["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]["name"] == "our-dragoman"


def test_a_storage_class_is_set_only_if_configured() -> None:
    [claim] = rendered()["StatefulSet"]["spec"]["volumeClaimTemplates"]
    assert "storageClassName" not in claim["spec"]
    [claim] = rendered(storage={"size": "2Gi", "className": "fast"})["StatefulSet"]["spec"][
        "volumeClaimTemplates"
    ]
    assert claim["spec"]["storageClassName"] == "fast"
    assert claim["spec"]["resources"]["requests"]["storage"] == "2Gi"
