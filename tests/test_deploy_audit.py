"""The units of systemd and the manifests of scheduled audits: of one piece, locked down, with options that exist."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path

import kubernetes_validate
import pytest
import typer
import yaml
from jsonpatch import JsonPatch
from typer.exceptions import TyperException

from policyeng.audit.scheduler import times_of
from policyeng.cli.app import app
from policyeng.configuration import resolve
from policyeng.models import JsonObject

ROOT = Path(__file__).resolve().parents[1]
UNITS = ROOT / "deploy" / "systemd"
AUDIT = ROOT / "deploy" / "kubernetes" / "audit"
SERVICES = ("policyeng-audit.service", "policyeng-audit-due.service")
COMMAND = typer.main.get_command(app)


def unit(name: str) -> ConfigParser:
    """A unit, its keys as they are spelled."""
    parser = ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # as its documentation has it
    parser.read_string((UNITS / name).read_text(encoding="utf-8"))
    return parser


def parsed(line: list[str]) -> JsonObject:
    """What a command line of `audit schedule` gives; it fails where an option does not exist."""
    command, subcommand, *arguments = line
    group = COMMAND.commands[command]  # type: ignore[attr-defined]  # a group, whatever its declared type
    context = group.commands[subcommand].make_context(subcommand, arguments)
    params: JsonObject = context.params
    return params


def objects() -> Iterator[JsonObject]:
    """The objects that the folder lists."""
    listed = yaml.safe_load((AUDIT / "kustomization.yaml").read_text(encoding="utf-8"))
    for name in listed["resources"]:
        yield from yaml.safe_load_all((AUDIT / name).read_text(encoding="utf-8"))


OBJECTS = {each["kind"]: each for each in objects()}
JOB = OBJECTS["CronJob"]["spec"]
POD = JOB["jobTemplate"]["spec"]["template"]["spec"]
[CONTAINER] = POD["containers"]


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_starts_what_exists(name: str) -> None:
    """With options that the command has; the long one has time enough to end."""
    service = unit(name)["Service"]
    program, *line = shlex.split(service["ExecStart"])
    given = parsed(line)

    assert program == "/opt/policyeng/bin/policyeng"
    assert str(given["config"]) == "/etc/policyeng/policyeng.toml"
    assert given["once"] is (service.get("Type") == "oneshot")
    if not given["once"]:
        assert given["drain_seconds"] < float(service["TimeoutStopSec"])
        assert "HUP" in service["ExecReload"]
    assert service["KillMode"] == "mixed"


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_locked_down(name: str) -> None:
    """Both in the same way: it writes its own directories alone and gains nothing."""
    service = unit(name)["Service"]

    for key in ("DynamicUser", "NoNewPrivileges", "PrivateTmp", "PrivateDevices", "ProtectHome", "RestrictNamespaces"):
        assert service[key] == "yes"
    assert service["ProtectSystem"] == "strict"
    assert service["CapabilityBoundingSet"] == ""
    assert service["StateDirectory"] == service["CacheDirectory"] == "policyeng"
    first, second = (dict(unit(each)["Service"]) for each in SERVICES)
    started = {"Type", "ExecStart", "ExecReload", "Restart", "RestartSec", "RestartPreventExitStatus"}
    times = {"TimeoutStopSec", "TimeoutStartSec"}
    assert {**first, **dict.fromkeys(started | times)} == {**second, **dict.fromkeys(started | times)}


def test_the_timer_starts_its_service() -> None:
    """And service and timer do not go together."""
    timer = unit("policyeng-audit.timer")

    assert timer["Timer"]["Unit"] == SERVICES[1]
    assert unit(SERVICES[0])["Unit"]["Conflicts"] == "policyeng-audit.timer"
    assert timer["Unit"]["Conflicts"] == SERVICES[0]


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    """Every key and value; a misspelled one is found."""
    assert shutil.which("systemd-analyze"), "install the package systemd"
    paths = []
    for path in UNITS.iterdir():
        copy = tmp_path / path.name
        copy.write_text(path.read_text(encoding="utf-8").replace("/opt/policyeng/bin/policyeng", "/bin/true"))
        paths.append(str(copy))
    verified = subprocess.run(["systemd-analyze", "verify", *paths], capture_output=True, text=True, check=False)
    assert (verified.returncode, verified.stderr) == (0, "")

    service = tmp_path / SERVICES[0]
    service.write_text(service.read_text(encoding="utf-8").replace("ProtectHome=yes", "ProtectHomes=yes"))
    again = subprocess.run(["systemd-analyze", "verify", str(service)], capture_output=True, text=True, check=False)
    assert "ProtectHomes" in again.stderr


@pytest.mark.parametrize("version", ["1.30", "1.35"])
@pytest.mark.parametrize("kind", sorted(OBJECTS))
def test_an_object_is_of_its_published_schema(kind: str, version: str) -> None:
    """With no key that it does not have; a misspelled one is found."""
    kubernetes_validate.validate(OBJECTS[kind], version, strict=True)
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate({**OBJECTS[kind], "sepc": {}}, version, strict=True)


def test_every_file_is_listed() -> None:
    """And the namespace is that of the webhook."""
    listed = yaml.safe_load((AUDIT / "kustomization.yaml").read_text(encoding="utf-8"))
    named = {*listed["resources"], *(file for each in listed["configMapGenerator"] for file in each["files"])}

    assert named == {path.name for path in AUDIT.iterdir()} - {"kustomization.yaml"}
    other = AUDIT.parent / "base" / "namespace.yaml"
    assert (AUDIT / "namespace.yaml").read_text(encoding="utf-8") == other.read_text(encoding="utf-8")


def test_the_job_never_overlaps_and_audits_what_is_due() -> None:
    """By the settings that come with it, which are read, and whose grace is longer than the time between two jobs."""
    given = parsed(CONTAINER["args"])
    settings = resolve({}, {}, ROOT, config=AUDIT / "policyeng.toml")

    assert JOB["concurrencyPolicy"] == "Forbid"
    assert JOB["jobTemplate"]["spec"]["backoffLimit"] == 0
    assert given["once"] is True
    mounts = {mount["mountPath"] for mount in CONTAINER["volumeMounts"]}
    assert str(given["config"].parent) in mounts
    assert settings.store.startswith("sqlite:////var/lib/policyeng/")
    assert "/var/lib/policyeng" in mounts
    for estate in settings.estates:
        assert times_of(estate) is not None
        assert estate.grace.total_seconds() > 15 * 60
    with pytest.raises(TyperException, match="No such option"):
        parsed([*CONTAINER["args"], "--onze"])


def test_the_pod_is_locked_down() -> None:
    """As the restricted pod security standard has it, with a root that cannot be written and no token."""
    pod, container = POD["securityContext"], CONTAINER["securityContext"]

    assert (pod["runAsNonRoot"], pod["seccompProfile"]) == (True, {"type": "RuntimeDefault"})
    assert pod["runAsUser"] > 0
    assert (container["allowPrivilegeEscalation"], container["readOnlyRootFilesystem"]) == (False, True)
    assert container["capabilities"] == {"drop": ["ALL"]}
    assert POD["automountServiceAccountToken"] is POD["enableServiceLinks"] is False
    assert {mount["name"] for mount in CONTAINER["volumeMounts"] if not mount.get("readOnly")} == {"kept", "tmp"}
    assert "memory" in CONTAINER["resources"]["limits"]
    assert OBJECTS["NetworkPolicy"]["spec"]["ingress"] == []


@pytest.mark.parametrize("version", ["1.30", "1.35"])
def test_with_postgresql_the_store_is_a_secret(version: str) -> None:
    """Whose URL takes the place of the one in the settings."""
    folder = AUDIT.parent / "audit-postgresql"
    overlay = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))
    [patch] = overlay["patches"]
    job = JsonPatch(yaml.safe_load(patch["patch"])).apply(OBJECTS["CronJob"])
    [container] = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]

    kubernetes_validate.validate(job, version, strict=True)
    assert overlay["resources"] == ["../audit"]
    assert container["env"][-1]["name"] == "POLICYENG_STORE"
    assert "secretKeyRef" in container["env"][-1]["valueFrom"]
    url = "postgresql://u@h/d"
    assert resolve({}, {"POLICYENG_STORE": url}, ROOT, config=AUDIT / "policyeng.toml").store == url
