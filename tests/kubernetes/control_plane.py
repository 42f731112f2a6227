"""A real etcd and a real kube-apiserver on loopback, for as long as a run lasts."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import httpx

from policyeng.models import JsonObject
from tests.certificates import Root, write_secret

ADMIN, USER = "admin", "data-scientist"
#: The identity of the API server for webhooks that require one.
CALLER = "kube-apiserver"
_READY_WITHIN = 120.0
_LAST_WORDS = 4000
_AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}


def free_port() -> int:
    """A port on loopback that no process listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running(command: Sequence[str | Path], log: Path, environ: Mapping[str, str] | None = None) -> Iterator[None]:
    """A process that ends with the block, its output in a file; the end of it is shown where the block fails."""
    with log.open("ab") as output:
        process = subprocess.Popen(list(map(str, command)), stdout=output, stderr=output, env=environ)
        try:
            yield
        except BaseException:
            last_words = log.read_text(encoding="utf-8", errors="replace")[-_LAST_WORDS:]
            sys.stderr.write(f"--- {command[0]} (exit {process.poll()})\n{last_words}\n")
            raise
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Cluster:
    """The API server, called as one of its users."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url = url
        self._client = httpx.Client(verify=ssl.create_default_context(cafile=str(folder / "ca.crt")), timeout=60)
        self.audit = folder / "audit.log"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def request(
        self, method: str, path: str, document: object = None, *, user: str = ADMIN, dry: bool = False
    ) -> httpx.Response:
        """Send a request; what it carries is read strictly, and PATCH is server-side apply."""
        parameters = {"fieldManager": "test"} if method != "DELETE" else {}
        if method != "GET" and method != "DELETE":
            parameters |= {"fieldValidation": "Strict"}
        if method == "PATCH":
            parameters |= {"force": "true"}
        if dry:
            parameters |= {"dryRun": "All"}
        kind = "application/apply-patch+yaml" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {user}-token", "Content-Type": kind}
        content = None if document is None else json.dumps(document)
        return self._client.request(method, self._url + path, params=parameters, content=content, headers=headers)

    def is_ready(self) -> bool:
        """Whether it serves."""
        try:
            return self.request("GET", "/readyz").status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    def audited(self, uri: str) -> JsonObject:
        """The annotations of the last event about a path."""
        events = map(json.loads, self.audit.read_text(encoding="utf-8").splitlines())
        found = [event for event in events if event["requestURI"].startswith(uri) and "annotations" in event]
        annotations: JsonObject = found[-1]["annotations"]
        return annotations


@contextmanager
def control_plane(etcd: Path, apiserver: Path, folder: Path, webhook: str, clients: Root) -> Iterator[Cluster]:
    """Start both; users are `ADMIN`, who may do everything, and `USER`, who may do what roles allow.

    Args:
        etcd: the program.
        apiserver: the other.
        folder: for all that they write.
        webhook: the host and port of a webhook that is shown a certificate where it requires one.
        clients: what signs that.
    """
    write_secret(folder)
    _write_admission(folder, webhook, clients)
    tokens = [f'{ADMIN}-token,{ADMIN},1,"system:masters"', f"{USER}-token,{USER},2"]
    (folder / "tokens.csv").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    (folder / "audit.json").write_text(json.dumps(_AUDIT), encoding="utf-8")
    store, peers, port = (free_port() for _ in range(3))
    loopback = "http://127.0.0.1"
    storing: list[str | Path] = [
        etcd,
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={loopback}:{store}",
        f"--advertise-client-urls={loopback}:{store}",
        f"--listen-peer-urls={loopback}:{peers}",
        "--unsafe-no-fsync",
    ]
    serving: list[str | Path] = [
        apiserver,
        f"--etcd-servers={loopback}:{store}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--tls-cert-file={folder / 'tls.crt'}",
        f"--tls-private-key-file={folder / 'tls.key'}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder / 'tls.key'}",
        f"--service-account-signing-key-file={folder / 'tls.key'}",
        f"--admission-control-config-file={folder / 'admission.json'}",
        f"--audit-policy-file={folder / 'audit.json'}",
        f"--audit-log-path={folder / 'audit.log'}",
    ]
    with (
        running(storing, folder / "etcd.log"),
        running(serving, folder / "apiserver.log"),
        Cluster(f"https://127.0.0.1:{port}", folder) as cluster,
    ):
        wait(cluster.is_ready, "the API server is not ready")
        yield cluster


def _write_admission(folder: Path, webhook: str, clients: Root) -> None:
    """What the API server shows to a webhook that requires a certificate, as `docs/kubernetes.md` has it."""
    certificate, key = clients.issue(folder, CALLER)
    user = {"client-certificate": str(certificate), "client-key": str(key)}
    callers = {"apiVersion": "v1", "kind": "Config", "users": [{"name": webhook, "user": user}]}
    (folder / "callers.json").write_text(json.dumps(callers), encoding="utf-8")
    version = {"apiVersion": "apiserver.config.k8s.io/v1"}
    configuration = version | {"kind": "WebhookAdmissionConfiguration", "kubeConfigFile": str(folder / "callers.json")}
    plugin = {"name": "ValidatingAdmissionWebhook", "configuration": configuration}
    admission = version | {"kind": "AdmissionConfiguration", "plugins": [plugin]}
    (folder / "admission.json").write_text(json.dumps(admission), encoding="utf-8")


def wait(until: Callable[[], bool], otherwise: str) -> None:
    """Wait until a condition is true.

    Raises:
        TimeoutError: it does not in time.
    """
    end = time.monotonic() + _READY_WITHIN
    while not until():
        if time.monotonic() > end:
            raise TimeoutError(otherwise)
        time.sleep(0.2)
