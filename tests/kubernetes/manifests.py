"""Our manifests as `kustomize` builds them, and the server that they describe, started here."""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml

from policyeng.models import JsonObject
from tests.certificates import Root, write_secret
from tests.kubernetes.control_plane import running

ROOT = Path(__file__).resolve().parents[2]
_MOUNTED = "/etc/policyeng"
#: In place of the Service, which nothing here routes to.
_LOCAL = """\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - ../plain-secret
patches:
  - target:
      kind: ValidatingWebhookConfiguration
    patch: |-
      - op: remove
        path: /webhooks/0/clientConfig/service
      - op: add
        path: /webhooks/0/clientConfig/url
        value: {url}/v1/admission-review
      - op: remove
        path: /webhooks/1/clientConfig/service
      - op: add
        path: /webhooks/1/clientConfig/url
        value: {url}/v1/admission-review
"""
#: The same, for callers who show a certificate.
_CLIENTS = """\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - ../local
components:
  - ../client-certificate
"""


class Manifests:
    """A copy of `deploy/kubernetes` with a certificate for it.

    Attributes:
        url: of the server that is started here.
        authority: what signs the certificates of those who call it.
    """

    def __init__(self, kustomize: Path, folder: Path, port: int) -> None:
        self._kustomize, self._folder, self._port = kustomize, folder, port
        self.url, self.authority = f"https://127.0.0.1:{port}", Root("clients")
        shutil.copytree(ROOT / "deploy" / "kubernetes", folder / "deploy")
        write_secret(folder / "deploy" / "plain-secret")
        for variant, text in {"local": _LOCAL.format(url=self.url), "clients": _CLIENTS}.items():
            (folder / "deploy" / variant).mkdir()
            (folder / "deploy" / variant / "kustomization.yaml").write_text(text, encoding="utf-8")

    def built(self, variant: str) -> list[JsonObject]:
        """The objects of a variant; `local` and `clients` have the address of the server that is started here."""
        command: list[str | Path] = [self._kustomize, "build", self._folder / "deploy" / variant]
        text = subprocess.run(command, check=True, capture_output=True).stdout
        return list(yaml.safe_load_all(text))

    def trust(self) -> ssl.SSLContext:
        """What a client trusts the server by."""
        return ssl.create_default_context(cafile=str(self._folder / "deploy" / "plain-secret" / "ca.crt"))

    @contextmanager
    def serving(self, variant: str = "local") -> Iterator[Path]:
        """The server with the arguments and variables of the Deployment, its volumes being folders; gives its log."""
        self._fill_volumes()
        [deployment] = [each for each in self.built(variant) if each["kind"] == "Deployment"]
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        here = {"--host": "127.0.0.1", "--port": str(self._port), "--drain-seconds": "0"}
        arguments = [self._argument(argument, here) for argument in container["args"]]
        environ = dict(os.environ) | {each["name"]: each["value"] for each in container["env"]}
        log = self._folder / "serve.log"
        with running([sys.executable, "-m", "policyeng", *arguments], log, environ):
            yield log

    def _argument(self, argument: str, here: dict[str, str]) -> str:
        flag, is_given, value = argument.partition("=")
        if not is_given:
            return argument
        return f"{flag}={here.get(flag, value.replace(_MOUNTED, str(self._folder / 'volumes')))}"

    def _fill_volumes(self) -> None:
        volumes, deploy = self._folder / "volumes", self._folder / "deploy"
        shutil.copytree(deploy / "plain-secret", volumes / "tls", dirs_exist_ok=True)
        shutil.copytree(deploy / "base", volumes / "settings", dirs_exist_ok=True)
        (volumes / "clients").mkdir(exist_ok=True)
        self.authority.write(volumes / "clients" / "ca.crt")
        self.take_snapshot()

    def take_snapshot(self, ago: timedelta = timedelta()) -> None:
        """Put the state of Azure that there is to be into its volume, as of some time ago."""
        state = json.loads((ROOT / "samples" / "workspaces" / "compliant.json").read_text(encoding="utf-8"))
        quota = {"scope": "/subscriptions/11111111-1111-1111-1111-111111111111", "region": "eastus"}
        state["quotas"].append({**quota, "family": "standardDSv2Family", "limitVCpus": 512})
        state["takenAt"] = (datetime.now(UTC) - ago).isoformat()
        there = self._folder / "volumes" / "snapshot" / "snapshot.json"
        there.parent.mkdir(exist_ok=True)
        fresh = there.with_suffix(".new")
        fresh.write_text(json.dumps(state), encoding="utf-8")
        fresh.replace(there)
