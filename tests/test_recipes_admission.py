"""The recipes for admission: hooks in real repositories, gates before plans and deployments, pipelines step by step."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from policyeng.bundle.manifest import bundle_yaml
from policyeng.models import JsonObject
from tests.bundles import write
from tests.conftest import ROOT
from tests.test_recipes import GROUP, OPEN, PLAN, WORKSPACE, Repository, terraform

pytestmark = pytest.mark.slow

CI, GIT = ROOT / "deploy" / "ci", ROOT / "deploy" / "git"
PAGE = ROOT / "docs" / "recipes-admission.md"
CLOSED = OPEN.replace('"Enabled"', '"Disabled"')
OTHER = OPEN.replace("/workspaces/ws", "/workspaces/other").replace('"name": "ws"', '"name": "other"')
ONLY = "--select AML-NET-001"
EMPTY = '{"snapshotVersion": 1, "resources": []}'


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """One without files and with an author."""
    made = Repository(tmp_path)
    for side in ("AUTHOR", "COMMITTER"):
        made.environ |= {f"GIT_{side}_NAME": "a", f"GIT_{side}_EMAIL": "a@example.com"}
    made.environ |= {"ADMIT_OPTIONS": ONLY, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    return made


def committed(repository: Repository, files: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Commit files."""
    write(repository.folder, files)
    return repository.run("git add -A; git commit -q -m change")


def hooked(repository: Repository) -> None:
    """Install the hook of commits."""
    shutil.copy(GIT / "pre-commit", repository.folder / ".git/hooks/pre-commit")


def test_the_page_quotes_every_recipe_exactly() -> None:
    """A reader may copy either."""
    page = PAGE.read_text(encoding="utf-8")
    gates = [path for path in CI.iterdir() if "-gate" in path.name]
    for path in [*GIT.iterdir(), *gates]:
        language = "yaml" if path.suffix == ".yml" else "sh"
        assert f"```{language}\n{path.read_text(encoding='utf-8')}```\n" in page, path.name
    assert len(gates) == 4


# ---------------------------------------------------------------- git


def test_a_commit_that_breaks_a_policy_is_refused(repository: Repository) -> None:
    """With the denials and how to fix them; the fixed commit is made, and so is an unrelated one."""
    hooked(repository)
    refused = committed(repository, {"infra/ws.json": OPEN, "README.md": "x"})
    closed = committed(repository, {"infra/ws.json": CLOSED})

    assert refused.returncode == 1
    assert "AML-NET-001" in refused.stderr
    assert "infra/ws.json:1:1" in refused.stderr
    assert "fix " in refused.stderr
    assert "pre-commit: refused by policyeng (exit 1)" in refused.stderr
    assert closed.returncode == 0, closed.stderr
    assert repository.run("git log --oneline").stdout.count("\n") == 1


def test_a_commit_does_not_change_what_it_is_checked_with(repository: Repository) -> None:
    """A change of the configuration counts from the next commit on; that of the first commit counts at once."""
    hooked(repository)
    weaker = 'fail_on = "critical"\n'
    first = committed(repository, {"policyeng.toml": 'fail_on = "low"\n'})
    refused = committed(repository, {"infra/ws.json": OPEN, "policyeng.toml": weaker})
    alone = repository.run("git reset -q; git add policyeng.toml; git commit -q -m configuration")
    taken = committed(repository, {})

    assert [ran.returncode for ran in (first, refused, alone, taken)] == [0, 1, 0, 0], refused.stderr
    assert "AML-NET-001" in refused.stderr


def test_what_failed_before_is_accepted(repository: Repository) -> None:
    """In a repository with a failure a commit elsewhere is made, one that adds another failure is not."""
    committed(repository, {"infra/ws.json": OPEN})
    hooked(repository)

    assert committed(repository, {"policyeng-empty.json": OTHER}).returncode == 1
    assert committed(repository, {"policyeng-empty.json": OTHER.replace('"Enabled"', '"Disabled"')}).returncode == 0


def test_staged_files_count_and_not_those_of_the_work_tree(repository: Repository) -> None:
    """A file that is fixed after it was staged is still the broken one of the commit."""
    hooked(repository)
    write(repository.folder, {"ws.json": OPEN})
    repository.run("git add -A")
    write(repository.folder, {"ws.json": CLOSED})

    assert repository.run("git commit -q -m change").returncode == 1


def test_a_commit_that_cannot_be_read_is_refused(repository: Repository) -> None:
    """As what could not be decided."""
    hooked(repository)
    refused = committed(repository, {"ws.json": OPEN[:-4]})

    assert refused.returncode == 1
    assert "(exit 2)" in refused.stderr


@pytest.fixture
def server(repository: Repository) -> Path:
    """A bare repository with the hook of pushes, to which the other one pushes."""
    bare = repository.folder.parent / "server.git"
    repository.run(f'git init -q --bare -b main "{bare}"; git checkout -q -b main; git remote add origin "{bare}"')
    shutil.copy(GIT / "pre-receive", bare / "hooks/pre-receive")
    return bare


def test_a_push_that_breaks_a_policy_is_refused(repository: Repository, server: Path) -> None:
    """The pusher reads why; fixed, it is accepted."""
    committed(repository, {"infra/ws.json": OPEN})
    refused = repository.run("git push -q origin main")
    committed(repository, {"infra/ws.json": CLOSED})
    taken = repository.run("git push -q origin main")

    assert refused.returncode == 1
    assert "remote: pre-receive: main is refused by policyeng (exit 1)" in refused.stderr
    assert "AML-NET-001" in refused.stderr
    assert taken.returncode == 0, taken.stderr
    assert repository.run(f'git -C "{server}" log --oneline main').stdout.count("\n") == 2


def test_a_branch_is_compared_with_the_default_one(repository: Repository, server: Path) -> None:
    """What fails on it already is not blamed on a branch from it; a branch may be deleted, and a tag pushed."""
    committed(repository, {"infra/ws.json": OPEN})
    (server / "hooks/pre-receive").rename(server / "hooks/off")
    repository.run("git push -q origin main")
    (server / "hooks/off").rename(server / "hooks/pre-receive")
    repository.run("git checkout -q -b feature")
    committed(repository, {"README.md": "x"})
    taken = repository.run("git push -q origin feature; git tag v1; git push -q origin v1")
    committed(repository, {"infra/b.json": OTHER})
    refused = repository.run("git push -q origin feature")

    assert (taken.returncode, refused.returncode) == (0, 1), taken.stderr
    assert "feature is refused" in refused.stderr
    assert repository.run("git push -q origin :feature").returncode == 0


def test_a_push_does_not_change_its_own_policies(repository: Repository, server: Path) -> None:
    """The configuration is the server's, not the one in the push, which cannot hide a file from it either."""
    lenient = 'fail_on = "critical"\n'
    hidden = "infra/ws.json export-ignore\n"
    (repository.folder / "link.json").symlink_to("/etc/passwd")
    committed(repository, {"infra/ws.json": OPEN, "policyeng.toml": lenient, ".gitattributes": hidden})
    own = repository.run("git push -q origin main")
    write(server, {"policyeng.toml": lenient})
    servers = repository.run("git push -q origin main")

    assert own.returncode == 1
    assert "AML-NET-001" in own.stderr
    assert "root:" not in own.stderr
    assert servers.returncode == 0, servers.stderr


# ---------------------------------------------------------------- plans and deployments


def gated(repository: Repository, script: str, before: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a gate with a state before."""
    write(repository.folder, {"before.json": before})
    given = {"SNAPSHOT": "before.json", "RESOURCE_GROUP": "rg-ml", **environ}
    return repository.run(f'sh "{CI}/{script}" {ONLY} --scope {GROUP}', **given)


def test_a_plan_that_breaks_a_policy_is_stopped(repository: Repository) -> None:
    """It continues where it makes nothing worse: deleted resources are gone."""
    terraform(repository, PLAN)
    stopped = gated(repository, "terraform-gate.sh", EMPTY)
    gone: JsonObject = {"address": "x", "mode": "managed", "type": "azurerm_machine_learning_workspace", "name": "ws"}
    gone |= {"change": {"actions": ["delete"], "before": {"id": WORKSPACE, "name": "ws"}, "after": None}}
    terraform(repository, PLAN | {"planned_values": {"root_module": {}}, "resource_changes": [gone]})
    deleted = gated(repository, "terraform-gate.sh", OPEN)

    assert stopped.returncode == 1, stopped.stderr
    assert "exit 1: denied: 1 change; 1 denied" in stopped.stdout
    assert deleted.returncode == 0, deleted.stdout
    assert "exit 0: allowed: 1 change; 1 cleared" in deleted.stdout


def what_if(repository: Repository, access: str) -> None:
    """A stand-in of the Azure CLI that predicts a workspace."""
    after = {**json.loads(OPEN), "apiVersion": "2024-04-01", "properties": {"publicNetworkAccess": access}}
    change = {"resourceId": WORKSPACE, "changeType": "Create", "before": None, "after": after, "delta": None}
    predicted = {"changes": [change], "error": None, "status": "Succeeded"}
    write(repository.folder.parent, {"predicted.json": json.dumps(predicted)})
    repository.program(
        "az",
        f"""case "$*" in
  "deployment group what-if --resource-group rg-ml --template-file main.bicep --no-pretty-print \
--result-format FullResourcePayloads") cat "{repository.folder.parent}/predicted.json" ;;
  "deployment group create --resource-group rg-ml --template-file main.bicep") touch deployed ;;
  *) echo "unexpected: $*" >&2; exit 64 ;;
esac""",
    )


@pytest.mark.parametrize(("access", "code"), [("Enabled", 1), ("Disabled", 0), ("[reference('x').access]", 0)])
def test_a_deployment_that_breaks_a_policy_is_stopped(repository: Repository, access: str, code: int) -> None:
    """Unknowns before the deployment are reported, and count where unknowns do."""
    what_if(repository, access)
    decided = gated(repository, "what-if-gate.sh", EMPTY)

    assert decided.returncode == code, decided.stdout + decided.stderr
    assert ("known only after deployment" in decided.stdout) is access.startswith("[")


def test_a_prediction_that_fails_stops_it(repository: Repository) -> None:
    """With the error of the tool, and no decision."""
    repository.program("az", "echo 'ERROR: not logged in' >&2; exit 1")
    stopped = gated(repository, "what-if-gate.sh", EMPTY)

    assert (stopped.returncode, stopped.stdout) == (1, "")


def scripts(name: str) -> dict[str, str]:
    """The commands of a pipeline, by the names of its steps."""
    parsed: Any = bundle_yaml((CI / name).read_text(encoding="utf-8"), name)
    steps = parsed["steps"] if "steps" in parsed else parsed["jobs"]["deploy"]["steps"]
    named = {step.get("name") or step.get("displayName"): step for step in steps}
    return {
        title: step.get("run") or step.get("script") or step.get("inputs", {}).get("inlineScript", "")
        for title, step in named.items()
        if title
    }


@pytest.mark.parametrize(
    ("pipeline", "access"), [("github-actions-gate.yml", "Enabled"), ("azure-pipelines-gate.yml", "Disabled")]
)
def test_a_pipeline_deploys_only_what_is_admitted(repository: Repository, pipeline: str, access: str) -> None:
    """Its steps in their order, up to the first that fails; the decision exists either way."""
    what_if(repository, access)
    write(repository.folder, {"before.json": EMPTY, "policyeng.toml": 'select = ["AML-NET-001"]'})
    steps = scripts(pipeline)
    order = [steps[name] for name in ("Install", "Predict", "Admit", "Deploy")]
    ran = repository.run("\n".join(order), RESOURCE_GROUP="rg-ml", SNAPSHOT="before.json")
    assert ran.returncode in (0, 1), ran.stderr
    decision = json.loads((repository.folder / "decision.json").read_text(encoding="utf-8"))

    assert decision["allowed"] is (ran.returncode == 0) is (access == "Disabled")
    assert set(scripts("github-actions-gate.yml").values()) >= set(order)  # both run the same
    assert (repository.folder / "deployed").exists() is (access == "Disabled")
