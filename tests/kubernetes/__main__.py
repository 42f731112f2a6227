"""Run the webhook against a real kube-apiserver, registered by our own manifests; `make kubernetes-test` calls it."""

from __future__ import annotations

import argparse
import copy
import json
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

import httpx
import yaml

from policyeng.models import JsonObject
from tests.kubernetes import custom_kinds as kinds
from tests.kubernetes.control_plane import ADMIN, CALLER, USER, Cluster, control_plane, free_port, wait
from tests.kubernetes.custom_kinds import COMPUTE, OLD, Custom
from tests.kubernetes.manifests import ROOT, Manifests
from tests.kubernetes.transcript import Transcript

_APPLIED = (httpx.codes.OK, httpx.codes.CREATED)


class Run:
    """One run: its requests, checks and transcript."""

    def __init__(self, cluster: Cluster, manifests: Manifests) -> None:
        self.cluster, self.manifests, self.transcript = cluster, manifests, Transcript()

    # ------------------------------------------------------------ before

    def prepare(self) -> None:
        """The kinds, the user's rights, and an object that was not evaluated."""
        version = self.cluster.request("GET", "/version").json()["gitVersion"]
        self.transcript.write(
            f"kube-apiserver {version}, etcd, and policyeng serve with the arguments of our Deployment"
        )
        for kind in kinds.KINDS:
            self.apply(kind.definition())
        for kind in kinds.KINDS:
            self._await(kind.path())
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": kinds.NAMESPACE}})
        rules = [
            {"apiGroups": ["", *(kind.group for kind in kinds.KINDS)], "resources": ["*"], "verbs": ["*"]},
        ]
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "team"}}
        self.apply({**role, "rules": rules})
        self.apply(
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": "team"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "team"},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}],
            }
        )
        self.transcript.head("before the webhook is registered, a failing object is stored")
        self.create(COMPUTE, kinds.compute("legacy", 1), 201)
        self.create(kinds.CLUSTER, kinds.managed_cluster(), 201)
        self.create(kinds.WORKSPACE, kinds.workspace("ws", "Disabled"), 201)

    def install(self, authority: Path | None) -> None:
        """Apply our manifests, every key of which the API server has to know."""
        self.transcript.head("our manifests are applied, with `fieldValidation=Strict`")
        for document in self.manifests.built("local"):
            self.apply(document, shown=True)
        if authority is None:
            self.transcript.write("the definitions of cert-manager are not there; its variant is not tried")
            return
        self.transcript.head("so is the variant for cert-manager, against its own definitions, as a dry run")
        for name in ("issuers", "certificates"):
            self.apply(yaml.safe_load((authority / f"cert-manager.io_{name}.yaml").read_text(encoding="utf-8")))
            self._await(f"/apis/cert-manager.io/v1/namespaces/{kinds.NAMESPACE}/{name}")
        for document in self.manifests.built("cert-manager"):
            self.apply(document, shown=True, dry=True)

    # ------------------------------------------------------------ steps

    def evaluate(self) -> None:
        """What a cluster's users see while the webhook is up."""
        transcript = self.transcript
        transcript.head("a violating object is refused, also in a dry run")
        self.create(COMPUTE, kinds.compute("training", 1), 403, "AML-CMP-008")
        transcript.annotated(self.cluster.audited(COMPUTE.path()))
        self.create(COMPUTE, kinds.compute("training", 1), 403, "AML-CMP-008", dry=True)
        transcript.head("so are those of samples/formats/manifests.yaml")
        for document in yaml.safe_load_all((ROOT / "samples/formats/manifests.yaml").read_text(encoding="utf-8")):
            kind = next(each for each in kinds.KINDS if each.kind == document["kind"])
            self.create(kind, document, 403, "denied the request", dry=True)
        transcript.head("a compliant one is stored, though not by a dry run")
        self.create(COMPUTE, kinds.compute("training", 0), 201, dry=True)
        assert self.cluster.request("GET", COMPUTE.path("training")).status_code == httpx.codes.NOT_FOUND
        self.create(COMPUTE, kinds.compute("training", 0), 201)
        transcript.head("an update that makes it worse is refused, and one that does not is stored")
        self.update(COMPUTE, kinds.compute("training", 2), 403, "AML-CMP-008")
        self.update(COMPUTE, kinds.compute("training", 0, most=3), 200)
        transcript.head("an update that keeps an old failure is stored with a warning; one that adds to it is refused")
        self.update(COMPUTE, _labelled(kinds.compute("legacy", 1)), 200, "AML-CMP-008 failed before")
        self.update(COMPUTE, kinds.compute("legacy", 2), 403, "AML-CMP-008")
        transcript.head("an object of an old version is converted to the newest one, and evaluated as that")
        self.update(OLD, kinds.workspace("ws", "Enabled", OLD), 403, "AML-NET-001")
        transcript.annotated(self.cluster.audited(OLD.path("ws")))
        self.create(OLD, kinds.workspace("open", "Enabled", OLD), 403, "AML-NET-001", dry=True)
        self.update(OLD, kinds.workspace("ws", "Disabled", OLD), 200)
        transcript.head("what a policy cannot decide is refused, because the settings have `strict_unknown = true`")
        self.create(COMPUTE, kinds.compute("gpu", 0, size="Standard_NC6s_v3"), 403, "AML-SKU-105", dry=True)
        transcript.head("a report in `status` is stored, whatever fails in `spec`")
        self.update(COMPUTE, {**kinds.compute("legacy", 1), "status": {"conditions": []}}, 200, below="/status")
        self.update(OLD, {**kinds.workspace("ws", "Enabled", OLD), "status": {"conditions": []}}, 200, below="/status")
        transcript.head("an object that cannot be evaluated is refused")
        broken = kinds.compute("broken", 0)
        broken["spec"]["properties"]["kubernetes"] = {}
        self.create(COMPUTE, broken, 422, "several kinds of compute at once")
        transcript.head(
            "a deletion is evaluated too: two computes run on this cluster; an older operator serves its version"
        )
        self.delete(kinds.CLUSTER, "aks-ml", 403, "AML-OPS-103", dry=True)
        self.delete(kinds.CLUSTER, "aks-ml", 403, "other-versions.azure.policyeng.io")
        self.delete(COMPUTE, "training", 200)
        transcript.head("a deletion that leaves Azure as it is changes nothing")
        kept = kinds.managed_cluster()
        kept["metadata"]["annotations"] = {"serviceoperator.azure.com/reconcile-policy": "detach-on-delete"}
        self.update(kinds.CLUSTER, kept, 200)
        self.delete(kinds.CLUSTER, "aks-ml", 200)
        transcript.head("an instance type of the Azure ML extension is evaluated as a part of the attached compute")
        self.create(kinds.INSTANCE_TYPE, kinds.new(kinds.INSTANCE_TYPE, "gpu", {"resources": {}}), 201)
        self.untouched()
        transcript.head("so are those in the namespace of the webhook, about which it is not asked")
        place = COMPUTE.path(namespace="policyeng")
        self.create(COMPUTE, kinds.compute("anything", 1, namespace="policyeng"), 201, user=ADMIN, path=place)

    def untouched(self) -> None:
        """Objects of other kinds."""
        self.transcript.head("objects of other kinds are stored without a message")
        began = len(self.transcript.lines)
        self.create(kinds.VAULT, kinds.new(kinds.VAULT, "kv", {"location": "anywhere"}), 201)
        self.delete(kinds.VAULT, "kv", 200)
        self.other_object()
        assert not [line for line in self.transcript.lines[began:] if not line.startswith((">", "<"))]

    def other_object(self) -> None:
        """One that is no custom resource."""
        path = f"/api/v1/namespaces/{kinds.NAMESPACE}/configmaps"
        document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "any"}}
        self._expect(f"{USER}: create ConfigMap any", 201, "", self.cluster.request("POST", path, document, user=USER))
        self._expect(f"{USER}: delete ConfigMap any", 200, "", self.cluster.request("DELETE", f"{path}/any", user=USER))

    def go_stale(self) -> None:
        """What they see while the snapshot is not renewed, and when it is."""
        self.transcript.head("with a snapshot that is too old nothing is decided; a new one is read when it arrives")
        self.manifests.take_snapshot(ago=timedelta(days=2))
        self._await_status(kinds.compute("training", 0), 500)
        self.create(COMPUTE, kinds.compute("training", 0), 500, "no decision: the state is")
        self.manifests.take_snapshot()
        self._await_status(kinds.compute("training", 0), 201)
        self.create(COMPUTE, kinds.compute("training", 0), 201, dry=True)

    def down(self) -> None:
        """What they see while it is not."""
        self.transcript.head("without the webhook, what it would evaluate is refused, and nothing else")
        self.create(COMPUTE, kinds.compute("training", 0), 500, "failed calling webhook")
        self.delete(COMPUTE, "legacy", 500, "failed calling webhook")
        self.untouched()

    def again(self) -> None:
        """And when it is back."""
        self.transcript.head("with the webhook again, what complies is stored")
        self.create(COMPUTE, kinds.compute("training", 0), 201)

    def identify(self, log: Path) -> None:
        """What they see where the webhook requires callers to identify themselves."""
        self.transcript.head(
            "with `client-certificate`, the API server sends one; without one only probes are answered"
        )
        self.create(COMPUTE, kinds.compute("other", 1), 403, "AML-CMP-008")
        lines = log.read_text(encoding="utf-8").splitlines()
        [*_, entry] = (json.loads(line) for line in lines if line.startswith("{"))
        self.transcript.write(f"    decision log: requested_by: {entry['requested_by']}")
        assert entry["requested_by"] == f"O=contoso,CN={CALLER}", entry
        probe = httpx.Client(base_url=self.manifests.url, verify=self.manifests.trust())
        with probe:
            responses = [probe.get("/healthz"), probe.get("/readyz"), probe.post("/v1/admission-review", json={})]
        for response in responses:
            self.transcript.write(f"> without a certificate: {response.request.method} {response.request.url.path}")
            self.transcript.write(f"< {response.status_code} {response.reason_phrase}")
        assert [response.status_code for response in responses] == [200, 200, 403]

    def heed(self) -> None:
        """Wait until the API server calls the webhook and gets a response."""
        self._await_status(kinds.compute("x", 1), 403)

    def _await_status(self, document: JsonObject, status: int) -> None:
        wait(
            lambda: self.cluster.request("POST", COMPUTE.path(), document, dry=True).status_code == status,
            f"the webhook is not called, or does not respond with {status}",
        )

    # ------------------------------------------------------------ requests

    def create(
        self,
        kind: Custom,
        document: JsonObject,
        status: int,
        words: str = "",
        *,
        user: str = USER,
        path: str = "",
        dry: bool = False,
    ) -> None:
        """Create an object as a user, and expect a status and words of the message or the warnings."""
        response = self.cluster.request("POST", path or kind.path(), document, user=user, dry=dry)
        how = f"create{' --dry-run' if dry else ''} {_called(document)}"
        self._expect(f"{user}: {how}{_idle(document)}", status, words, response)

    def update(self, kind: Custom, document: JsonObject, status: int, words: str = "", *, below: str = "") -> None:
        """Replace an object."""
        path = kind.path(document["metadata"]["name"])
        current = self.cluster.request("GET", path).json()
        whole = copy.deepcopy(document)
        whole["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"]
        response = self.cluster.request("PUT", path + below, whole, user=USER)
        self._expect(f"{USER}: replace {_called(document)}{below}{_idle(document)}", status, words, response)

    def delete(self, kind: Custom, name: str, status: int, words: str = "", *, dry: bool = False) -> None:
        """Delete an object."""
        response = self.cluster.request("DELETE", kind.path(name), user=USER, dry=dry)
        self._expect(f"{USER}: delete{' --dry-run' if dry else ''} {kind.kind} {name}", status, words, response)

    def apply(self, document: JsonObject, *, shown: bool = False, dry: bool = False) -> None:
        """Apply an object as the administrator."""
        response = self.cluster.request("PATCH", _path(document), document, dry=dry)
        if shown or response.status_code not in _APPLIED:
            self.transcript.record(f"{ADMIN}: apply {_called(document)}", response)
        if response.status_code not in _APPLIED or "warning" in response.headers:
            raise AssertionError(response.text)

    def _expect(self, request: str, status: int, words: str, response: httpx.Response) -> None:
        self.transcript.record(request, response)
        heard = response.text + str(response.headers.get_list("warning"))
        if response.status_code != status or words not in heard:
            raise AssertionError(f"{request}: {response.status_code} where {status} `{words}` should be: {heard}")

    def _await(self, path: str) -> None:
        """Wait until objects of a kind are served."""
        wait(lambda: self.cluster.request("GET", path).status_code == httpx.codes.OK, f"nothing is served at {path}")


def _path(document: JsonObject) -> str:
    group, _, _ = document["apiVersion"].rpartition("/")
    kind, metadata = document["kind"].lower(), document["metadata"]
    plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
    within = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    return f"/{'apis' if group else 'api'}/{document['apiVersion']}{within}/{plural}/{metadata['name']}"


def _called(document: JsonObject) -> str:
    return f"{document['kind']} {document['metadata']['name']}"


def _idle(document: JsonObject) -> str:
    """Of a compute cluster, what it keeps while it is idle: what the steps are about."""
    if document["kind"] != COMPUTE.kind:
        return ""
    scale = document["spec"]["properties"]["amlCompute"]["properties"]["scaleSettings"]
    return f" (minNodeCount: {scale['minNodeCount']}, maxNodeCount: {scale['maxNodeCount']})"


def _labelled(document: JsonObject) -> JsonObject:
    document["metadata"]["labels"] = {"team": "churn"}
    return document


def main() -> None:
    """Run all steps; the transcript is written as far as they went."""
    parser = argparse.ArgumentParser(description=__doc__)
    for program in ("etcd", "apiserver", "kustomize"):
        parser.add_argument(f"--{program}", type=Path, required=True)
    parser.add_argument("--cert-manager", type=Path, help="the folder of its custom resource definitions")
    parser.add_argument("--transcript", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        manifests = Manifests(given.kustomize, folder / "webhook", free_port())
        webhook = manifests.url.removeprefix("https://")
        with control_plane(given.etcd, given.apiserver, folder / "cluster", webhook, manifests.authority) as cluster:
            run = Run(cluster, manifests)
            try:
                _all_steps(run, given.cert_manager)
            finally:
                text = "\n".join(run.transcript.lines) + "\n"
                if given.transcript is not None:
                    given.transcript.write_text(text, encoding="utf-8")
                sys.stdout.write(text)


def _all_steps(run: Run, authority: Path | None) -> None:
    run.prepare()
    run.install(authority)
    with run.manifests.serving():
        run.heed()
        run.evaluate()
        run.go_stale()
    run.down()
    with run.manifests.serving():
        run.heed()
        run.again()
    with run.manifests.serving("clients") as log:
        run.heed()
        run.identify(log)


if __name__ == "__main__":
    main()
