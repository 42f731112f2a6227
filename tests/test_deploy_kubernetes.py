"""The manifests of the webhook: of the published schemas, of one piece, and locked down."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import kubernetes_validate
import pytest
import typer
import yaml
from jsonpatch import JsonPatch
from typer.exceptions import TyperException

from policyeng.cli.app import app
from policyeng.configuration import resolve
from policyeng.models import JsonObject
from policyeng.server.options import ServerOptions
from policyeng.sources import load_exemptions
from policyeng.sources.kubernetes.objects import EXTENSION_GROUP, KINDS

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy" / "kubernetes"
VARIANTS = ("cert-manager", "plain-secret")
CERT_MANAGER = json.loads((ROOT / "tests" / "kubernetes" / "cert-manager.schema.json").read_text(encoding="utf-8"))
_TEXT = {"type": "string"}
_SELECTOR = {
    "type": "object",
    "properties": {"name": _TEXT, "key": _TEXT},
    "required": ["name", "key"],
    "additionalProperties": False,
}


def _object(**properties: JsonObject) -> JsonObject:
    return {"type": "object", "properties": properties, "additionalProperties": False}


#: The fields of monitoring.coreos.com/v1 that our manifest uses, as the Prometheus Operator defines them.
SERVICE_MONITOR = _object(
    apiVersion={"const": "monitoring.coreos.com/v1"},
    kind={"const": "ServiceMonitor"},
    metadata={"type": "object", "required": ["name"]},
    spec={
        **_object(
            jobLabel=_TEXT,
            selector=_object(matchLabels={"type": "object", "additionalProperties": _TEXT}),
            endpoints={
                "type": "array",
                "items": _object(
                    port=_TEXT,
                    scheme={"enum": ["http", "https"]},
                    path=_TEXT,
                    interval={"type": "string", "pattern": "^[0-9]+(ms|s|m|h)$"},
                    tlsConfig=_object(ca=_object(secret=_SELECTOR), serverName=_TEXT),
                ),
            },
        ),
        "required": ["endpoints", "selector"],
    },
)
SETTINGS = "/etc/policyeng/settings/"


def objects(folder: str) -> Iterator[JsonObject]:
    """The objects that a folder lists, as they are in its files."""
    listed = yaml.safe_load((DEPLOY / folder / "kustomization.yaml").read_text(encoding="utf-8"))
    for name in listed["resources"]:
        path = DEPLOY / folder / name
        if path.is_file():
            yield from yaml.safe_load_all(path.read_text(encoding="utf-8"))


BASE = {each["kind"]: each for each in objects("base")}
CERTIFICATES = list(objects("cert-manager"))
POD = BASE["Deployment"]["spec"]["template"]["spec"]
[CONTAINER] = POD["containers"]
WEBHOOK, OTHER_VERSIONS = BASE["ValidatingWebhookConfiguration"]["webhooks"]
#: Of what the extension of Azure Machine Learning for Kubernetes installs.
INSTANCE_TYPES = {(EXTENSION_GROUP, "instancetypes"): "v1alpha1"}


COMMAND = typer.main.get_command(app)


def arguments() -> dict[str, str]:
    """The flags of the container, with their values."""
    command, *flags = CONTAINER["args"]
    assert command == "serve"
    return dict(flag.partition("=")[::2] for flag in flags)


@pytest.mark.parametrize("version", ["1.30", "1.35"])
@pytest.mark.parametrize("kind", sorted(BASE))
def test_an_object_is_of_its_published_schema(kind: str, version: str) -> None:
    """With no key that it does not have; a misspelled one is found."""
    kubernetes_validate.validate(BASE[kind], version, strict=True)
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate({**BASE[kind], "sepc": {}}, version, strict=True)


@pytest.mark.parametrize("certificate", CERTIFICATES, ids=lambda each: f"{each['kind']}-{each['metadata']['name']}")
def test_a_certificate_is_of_the_schema_of_cert_manager(certificate: JsonObject) -> None:
    """As cut from its custom resource definitions; a misspelled key is found."""
    assert certificate["apiVersion"] == "cert-manager.io/v1"
    schema = CERT_MANAGER[certificate["kind"]]
    jsonschema.validate(certificate, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**certificate, "spec": {**certificate["spec"], "dnsName": ["x"]}}, schema)


def test_every_file_is_listed_and_every_listed_file_is_there() -> None:
    """In the base and in both variants, which use the base."""
    for folder in ("base", *VARIANTS):
        listed = yaml.safe_load((DEPLOY / folder / "kustomization.yaml").read_text(encoding="utf-8"))
        named = {*listed["resources"], *(patch["path"] for patch in listed.get("patches", ()))}
        named |= {file for each in listed.get("configMapGenerator", ()) for file in each["files"]}
        there = {path.name for path in (DEPLOY / folder).glob("*.[yt][ao]ml")} - {"kustomization.yaml"}
        assert {name for name in named if not name.startswith("..")} == there
        assert ("../base" in named) is (folder in VARIANTS)


def test_the_webhook_is_called_for_exactly_the_kinds_that_are_evaluated() -> None:
    """By their plurals, in the newest version and in all others, whenever they are made, changed or deleted."""
    newest = {(group, _plural(kind)): known.versions[-1] for (group, kind), known in KINDS.items() if known.read}

    assert calls_of(WEBHOOK) == newest | INSTANCE_TYPES
    assert calls_of(OTHER_VERSIONS) == dict.fromkeys(newest | INSTANCE_TYPES, "*")
    for rule in (*WEBHOOK["rules"], *OTHER_VERSIONS["rules"]):
        assert rule["scope"] == "*"
        assert sorted(rule["operations"]) == ["CREATE", "DELETE", "UPDATE"]


def calls_of(webhook: JsonObject) -> dict[tuple[str, str], str]:
    """The version of each group and plural that a webhook names."""
    return {
        (group, name): version
        for rule in webhook["rules"]
        for group in rule["apiGroups"]
        for name in rule["resources"]
        for version in rule["apiVersions"]
    }


def test_the_webhook_is_called_once_for_a_version() -> None:
    """The second webhook leaves out exactly those that the first one names, and is the same in all else."""
    [condition] = OTHER_VERSIONS["matchConditions"]
    listed = condition["expression"].partition("[")[2].partition("]")[0]
    named = {f"{group}/{version}" for (group, _), version in calls_of(WEBHOOK).items()}
    own = ("matchConditions", "matchPolicy", "name", "rules")

    assert condition["expression"].startswith('!((request.kind.group + "/" + request.kind.version) in [')
    assert set(json.loads(f"[{listed}]")) == named
    assert {key: value for key, value in WEBHOOK.items() if key not in own} == {
        key: value for key, value in OTHER_VERSIONS.items() if key not in own
    }


def _plural(kind: str) -> str:
    return f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"


def test_the_webhook_fails_closed_and_spares_its_own_namespace_alone() -> None:
    """It responds before the API server stops waiting."""
    [left_out] = WEBHOOK["namespaceSelector"]["matchExpressions"]
    kept = {
        "key": "kubernetes.io/metadata.name",
        "operator": "NotIn",
        "values": [BASE["Namespace"]["metadata"]["name"]],
    }

    assert (WEBHOOK["failurePolicy"], WEBHOOK["sideEffects"]) == ("Fail", "NoneOnDryRun")
    assert (WEBHOOK["matchPolicy"], OTHER_VERSIONS["matchPolicy"]) == ("Equivalent", "Exact")
    assert WEBHOOK["admissionReviewVersions"] == ["v1"]
    assert left_out == kept
    assert "objectSelector" not in WEBHOOK
    assert float(arguments()["--deadline"]) < WEBHOOK["timeoutSeconds"] <= 10


def test_the_pod_ends_without_losing_a_request() -> None:
    """It responds until its end is known everywhere, and is given the time for that and for what is at work then."""
    probe = CONTAINER["readinessProbe"]
    drain, deadline = (float(arguments()[flag]) for flag in ("--drain-seconds", "--deadline"))

    assert drain >= probe["periodSeconds"] * probe["failureThreshold"]
    assert drain + deadline < POD["terminationGracePeriodSeconds"]
    assert arguments()["--decision-log"] == "-"


def test_the_parts_name_each_other() -> None:
    """Service and Deployment, ports, secret, certificate, authority; variables that name the service set nothing."""
    assert POD["enableServiceLinks"] is False
    name, namespace = BASE["Service"]["metadata"]["name"], BASE["Namespace"]["metadata"]["name"]
    labels = BASE["Deployment"]["spec"]["template"]["metadata"]["labels"]
    service = WEBHOOK["clientConfig"]["service"]
    volumes = {each["name"]: each for each in POD["volumes"]}
    serving = next(each for each in CERTIFICATES if each["metadata"]["name"] == name)
    injected = yaml.safe_load((DEPLOY / "cert-manager" / "inject-ca.yaml").read_text(encoding="utf-8"))

    assert (service["name"], service["namespace"], service["path"]) == (name, namespace, "/v1/admission-review")
    assert arguments()["--only"] == service["path"].removeprefix("/v1/")
    assert service["port"] == BASE["Service"]["spec"]["ports"][0]["port"]
    assert CONTAINER["ports"][0]["containerPort"] == int(arguments()["--port"])
    for kind in ("Service", "PodDisruptionBudget", "NetworkPolicy"):
        spec = BASE[kind]["spec"]
        selector = (
            spec["selector"] if kind == "Service" else (spec.get("selector") or spec["podSelector"])["matchLabels"]
        )
        assert selector == labels
    assert serving["spec"]["secretName"] == volumes["tls"]["secret"]["secretName"]
    assert f"{name}.{namespace}.svc" in serving["spec"]["dnsNames"]
    assert injected["metadata"]["annotations"] == {"cert-manager.io/inject-ca-from": f"{namespace}/{name}"}
    spaces = {each["metadata"].get("namespace") for each in [*BASE.values(), *CERTIFICATES]}
    assert spaces == {namespace, None}


def test_the_pod_is_locked_down() -> None:
    """As the restricted pod security standard has it, and with a root that cannot be written."""
    pod, container = POD["securityContext"], CONTAINER["securityContext"]

    assert BASE["Namespace"]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert (pod["runAsNonRoot"], pod["seccompProfile"]) == (True, {"type": "RuntimeDefault"})
    assert pod["runAsUser"] > 0
    assert (container["allowPrivilegeEscalation"], container["readOnlyRootFilesystem"]) == (False, True)
    assert container["capabilities"] == {"drop": ["ALL"]}
    assert POD["automountServiceAccountToken"] is BASE["ServiceAccount"]["automountServiceAccountToken"] is False
    assert {mount["name"] for mount in CONTAINER["volumeMounts"] if not mount.get("readOnly")} == {"tmp"}
    assert {"cpu", "memory"} <= CONTAINER["resources"]["requests"].keys()
    assert "memory" in CONTAINER["resources"]["limits"]
    assert BASE["NetworkPolicy"]["spec"]["egress"] == []
    assert [CONTAINER[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe")] == [
        "/healthz",
        "/readyz",
    ]


@pytest.mark.parametrize("version", ["1.30", "1.35"])
def test_an_api_server_that_shows_a_certificate_is_not_asked_for_a_token(version: str) -> None:
    """The component replaces the flag that opens it, and mounts the authority that certificates are verified with."""
    component = yaml.safe_load((DEPLOY / "client-certificate" / "kustomization.yaml").read_text(encoding="utf-8"))
    [patch] = component["patches"]
    assert (component["kind"], patch["target"]) == ("Component", {"kind": "Deployment", "name": "policyeng"})
    deployment = JsonPatch(yaml.safe_load(patch["patch"])).apply(BASE["Deployment"])
    pod = deployment["spec"]["template"]["spec"]
    [container] = pod["containers"]
    added = [argument for argument in container["args"] if argument not in CONTAINER["args"]]
    mounts = {each["mountPath"]: each for each in container["volumeMounts"]}

    kubernetes_validate.validate(deployment, version, strict=True)
    assert set(CONTAINER["args"]) - set(container["args"]) == {"--insecure-listen"}
    assert added == ["--tls-client-ca=/etc/policyeng/clients/ca.crt"]
    assert mounts["/etc/policyeng/clients"]["readOnly"] is True
    assert mounts["/etc/policyeng/clients"]["name"] in {volume["name"] for volume in pod["volumes"]}
    assert requires_tokens(container["args"])


def test_prometheus_finds_every_pod() -> None:
    """By the labels, the port and the certificate of the Service, under the name of the job that the rules expect."""
    component = yaml.safe_load((DEPLOY / "monitoring" / "kustomization.yaml").read_text(encoding="utf-8"))
    (monitor,) = objects("monitoring")
    service, secret = BASE["Service"], next(volume for volume in POD["volumes"] if volume["name"] == "tls")
    spec = monitor["spec"]
    (endpoint,) = spec["endpoints"]
    serving = next(each for each in CERTIFICATES if each["metadata"]["name"] == service["metadata"]["name"])

    assert (component["kind"], component["resources"]) == ("Component", ["service-monitor.yaml"])
    jsonschema.validate(monitor, SERVICE_MONITOR)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(
            {**monitor, "spec": {**spec, "endpoints": [{**endpoint, "ports": "https"}]}}, SERVICE_MONITOR
        )
    assert monitor["metadata"]["namespace"] == service["metadata"]["namespace"]
    assert spec["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert service["metadata"]["labels"][spec["jobLabel"]] == "policyeng"
    assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
    assert endpoint["tlsConfig"]["ca"]["secret"]["name"] == secret["secret"]["secretName"]
    assert endpoint["tlsConfig"]["serverName"] in serving["spec"]["dnsNames"]


def requires_tokens(args: list[str]) -> bool:
    """Whether the server that is so started requires tokens of callers; its arguments are valid."""
    serve = COMMAND.commands["serve"]  # type: ignore[attr-defined]  # a group, whatever its declared type
    given = serve.make_context("serve", args[1:]).params
    options = {name: given[name] for name in ("host", "tls_cert", "tls_key", "tls_client_ca", "insecure_listen")}
    return ServerOptions(**options).insecure_listen is False


def test_the_settings_that_come_with_it_are_read() -> None:
    """With the exemptions that they name; every file that a flag names lies in a volume that is mounted."""
    given = arguments()
    settings = resolve({}, {}, DEPLOY, config=DEPLOY / "base" / given["--config"].removeprefix(SETTINGS))
    assert [path.name for path in settings.exemptions] == ["exemptions.yaml"]
    assert settings.strict_unknown is True
    for path in settings.exemptions:
        assert load_exemptions(path) == ()
    mounts = [mount["mountPath"] for mount in CONTAINER["volumeMounts"]]
    for value in given.values():
        assert not value.startswith("/") or any(value.startswith(f"{mount}/") for mount in mounts)


def test_the_command_line_has_every_flag_of_the_manifest() -> None:
    """With values that it takes."""
    serve = COMMAND.commands["serve"]  # type: ignore[attr-defined]  # a group, whatever its declared type
    context = serve.make_context("serve", list(CONTAINER["args"][1:]))

    assert context.params["port"] == CONTAINER["ports"][0]["containerPort"]
    assert context.params["deadline"] == float(arguments()["--deadline"])
    with pytest.raises(TyperException, match="No such option"):
        serve.make_context("serve", ["--tls-certificate=x"])
