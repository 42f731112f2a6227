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


#: By name, what a push contains besides a README: each describes a workspace that anybody reaches.
HIDING: dict[str, dict[str, str]] = {
    "alone": {"main.json": OPEN},
    "ignored": {"main.json": OPEN, ".gitignore": "main.json\n*.json\n"},
    "in a hidden folder": {".infra/main.json": OPEN},
    "in an ignored hidden folder": {".infra/deep/main.json": OPEN, ".gitignore": ".infra/\n"},
    "in node_modules": {"node_modules/x/main.json": OPEN},
    "a template": {"main.template": OPEN},
    "json5": {"main.json5": OPEN},
    "attributes": {".gitattributes": OPEN},
    "excluded": {"main.json": OPEN, "policyeng.toml": 'exclude = ["*.json"]\n'},
    "excluded below": {"infra/main.json": OPEN, "infra/policyeng.toml": 'exclude = ["*"]\n'},
    "not exported": {"main.json": OPEN, ".gitattributes": "*.json export-ignore\n"},
    "converted": {"main.json": OPEN, ".gitattributes": "*.json working-tree-encoding=UTF-7 text eol=crlf ident\n"},
    "with a blank": {"a main file.json": OPEN},
    "with a dash": {"--exclude=x.json": OPEN},
    "with a line break": {"a\nmain.json": OPEN},
    "in other letters": {"m\u00e4in.json": OPEN},
    "empty": {"policyeng-empty.json": OPEN},
}


def all_committed(repository: Repository, files: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Commit files, ignored ones too."""
    write(repository.folder, files)
    return repository.run("git add --force -A; git commit -q -m change")


@pytest.mark.attack
@pytest.mark.parametrize("name", HIDING)
def test_nothing_in_a_push_hides_a_file_from_the_hook(repository: Repository, server: Path, name: str) -> None:
    """Neither ignore rules nor folders, suffixes, attributes or a configuration."""
    all_committed(repository, {"README.md": "x"})
    assert repository.run("git push -q origin main").returncode == 0
    all_committed(repository, HIDING[name])
    refused = repository.run("git push -q origin main")

    assert refused.returncode == 1, refused.stderr
    assert "AML-NET-001" in refused.stderr
    assert repository.run(f'git -C "{server}" log --oneline main').stdout.count("\n") == 1


@pytest.mark.parametrize("name", HIDING)
def test_nothing_in_a_commit_hides_a_file_from_the_hook(repository: Repository, name: str) -> None:
    """As in a push."""
    hooked(repository)
    assert all_committed(repository, {"README.md": "x"}).returncode == 0
    refused = all_committed(repository, HIDING[name])

    assert refused.returncode == 1, refused.stderr
    assert "AML-NET-001" in refused.stderr


POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 12345\n"
SUBMODULE = "git update-index --add --cacheinfo 160000,1111111111111111111111111111111111111111,infra/modules"


@pytest.mark.attack
@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (f"printf '{POINTER}' > main.json; git add main.json", "LFS pointer ./main.json"),
        (f"mkdir -p ./-a; printf '{POINTER}' > './-a/b c'; git add .", "LFS pointer ./-a/b c"),
        (SUBMODULE, "submodule infra/modules"),
    ],
    ids=["LFS", "LFS with a blank", "submodule"],
)
@pytest.mark.usefixtures("server")
def test_what_is_not_in_a_push_is_refused(repository: Repository, script: str, reason: str) -> None:
    """It may contain anything; the administrator can allow it, and what was there before stays."""
    all_committed(repository, {"README.md": "x"})
    repository.run("git push -q origin main")
    repository.run(f"{script}; git commit -q -m unread")
    refused = repository.run("git push -q origin main")
    allowed = repository.run("git push -q origin main", ADMIT_UNREAD="allow")
    repository.run("git commit -q --allow-empty -m later")
    later = repository.run("git push -q origin main")

    assert refused.returncode == 1
    assert "main is refused, because this cannot be checked" in refused.stderr
    assert reason in refused.stderr
    assert (allowed.returncode, later.returncode) == (0, 0), (allowed.stderr, later.stderr)
    hooked(repository)
    repository.run("git rm -q --cached -r --ignore-unmatch infra/modules main.json ./-a; git commit -q -m without")
    commit = repository.run(f"{script}; git commit -q -m unread")
    assert commit.returncode == 1
    assert reason in commit.stderr


def test_every_ref_of_a_push_is_checked(repository: Repository, server: Path) -> None:
    """Branches, tags, merges and pushes by force; one that is refused refuses the push."""
    all_committed(repository, {"README.md": "x"})
    repository.run("git push -q origin main")
    repository.run("git checkout -q -b open")
    all_committed(repository, {"main.json": OPEN})
    push = {
        "a new branch": "git push -q origin open",
        "a branch of another name": "git push -q origin open:refs/heads/a/b",
        "a tag": "git tag v1; git push -q origin v1",
        "an annotated tag": "git tag -a -m x v2; git push -q origin v2",
        "a tag of a tree": "git tag v3 'HEAD^{tree}'; git push -q origin v3",
        "a tag of a file": "git tag v4 HEAD:main.json; git push -q origin v4",
        "a ref of its own": "git push -q origin open:refs/deploy/now",
        "several refs": "git push -q origin open main:refs/heads/other",
        "by force": "git push -q --force origin open:main",
        "a merge": "git checkout -q main; git merge -q --no-ff -m merge open; git push -q origin main",
    }
    for name, script in push.items():
        ran = repository.run(script)
        assert ran.returncode == 1, (name, ran.stderr)
        assert "is refused" in ran.stderr, name
    assert (
        repository.run(f'git -C "{server}" for-each-ref').stdout.count("\n") <= 2
    )  # several refs are taken one by one


@pytest.mark.usefixtures("server")
def test_what_is_harmless_is_pushed(repository: Repository) -> None:
    """Without resources of ours, with a deleted branch, and with a tag of what is there."""
    all_committed(repository, {"README.md": "x", "package.json": '{"name": "x"}'})
    first = repository.run("git push -q origin main")
    rest = repository.run("git push -q origin main:other; git tag v1; git push -q origin v1; git push -q origin :other")

    assert (first.returncode, rest.returncode) == (0, 0), first.stderr + rest.stderr
    assert "allowed: 0 changes" in first.stderr


def test_a_push_that_cannot_be_read_is_refused(repository: Repository, server: Path) -> None:
    """A file of the state before is gone on the server, as after a fault of its disk."""
    all_committed(repository, {"infra/ws.json": CLOSED})
    repository.run("git push -q origin main")
    blob = repository.run("git rev-parse HEAD:infra/ws.json").stdout.strip()
    (server / "objects" / blob[:2] / blob[2:]).unlink()
    all_committed(repository, {"README.md": "y"})
    refused = repository.run("git push -q origin main")

    assert refused.returncode == 1
    assert "main is refused, because its files cannot be read" in refused.stderr


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
