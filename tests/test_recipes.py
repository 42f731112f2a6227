"""The recipes for CI and the hook for pre-commit: their steps are run as written, in repositories made for it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from junitparser import JUnitXml

from policyeng import __version__
from policyeng.bundle.manifest import bundle_yaml
from policyeng.sources import FORMATS
from tests.bundles import write
from tests.conftest import ROOT
from tests.warm import write_program

pytestmark = pytest.mark.slow

RECIPES = ROOT / "deploy" / "ci"
PAGE = ROOT / "docs" / "recipes.md"
HOOKS = ROOT / ".pre-commit-hooks.yaml"
GROUP = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-ml"
WORKSPACE = f"{GROUP}/providers/Microsoft.MachineLearningServices/workspaces/ws"
OPEN = f"""\
{{
  "id": "{WORKSPACE}",
  "name": "ws",
  "type": "Microsoft.MachineLearningServices/workspaces",
  "properties": {{
    "publicNetworkAccess": "Enabled"
  }}
}}
"""
PLACE = ("infra/workspace.json", 6, 28)

#: What `terraform show -json` prints for a workspace that anybody reaches.
PLAN = {
    "format_version": "1.2",
    "terraform_version": "1.9.8",
    "planned_values": {
        "root_module": {
            "resources": [
                {
                    "address": "azurerm_machine_learning_workspace.ws",
                    "mode": "managed",
                    "type": "azurerm_machine_learning_workspace",
                    "name": "ws",
                    "provider_name": "registry.terraform.io/hashicorp/azurerm",
                    "schema_version": 0,
                    "values": {
                        "name": "ws",
                        "location": "westeurope",
                        "resource_group_name": "rg-ml",
                        "public_network_access_enabled": True,
                    },
                }
            ]
        }
    },
    "resource_changes": [],
    "configuration": {},
}
#: What `az bicep build` writes for one whose access is a parameter, and `az bicep build-params` for its value.
TEMPLATE = {
    "$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
    "contentVersion": "1.0.0.0",
    "parameters": {"access": {"type": "string"}},
    "resources": [
        {
            "type": "Microsoft.MachineLearningServices/workspaces",
            "apiVersion": "2024-04-01",
            "name": "ws",
            "location": "westeurope",
            "properties": {"publicNetworkAccess": "[parameters('access')]"},
        }
    ],
}
PARAMETERS = {
    "$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentParameters.json#",
    "contentVersion": "1.0.0.0",
    "parameters": {"access": {"value": "Enabled"}},
}
#: What `az ml compute list` prints for a cluster that SSH reaches from anywhere.
COMPUTES = [
    {
        "id": f"{WORKSPACE}/computes/train",
        "name": "train",
        "type": "amlcompute",
        "location": "westeurope",
        "provisioning_state": "Succeeded",
        "size": "STANDARD_DS3_V2",
        "tier": "dedicated",
        "min_instances": 1,
        "max_instances": 4,
        "idle_time_before_scale_down": 120,
        "enable_node_public_ip": True,
        "ssh_public_access_enabled": True,
        "network_settings": {},
        "tags": {},
    }
]


class Repository:
    """A git repository with `policyeng`, `python` and stand-ins of other programs on its PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "repository"
        self.folder.mkdir()
        self.programs = folder / "bin"
        self.programs.mkdir()
        write_program(self.programs / "policyeng")
        self.program("python", f'exec "{sys.executable}" "$@"')
        self.environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("POLICYENG_", "GIT_"))},
            "POLICYENG_CACHE_DIR": os.environ["POLICYENG_CACHE_DIR"],
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "PIP_NO_INDEX": "1",  # pip finds the pinned version installed, or fails
            "PIP_DRY_RUN": "1",
            "PRE_COMMIT_HOME": str(folder / "pre-commit"),
            "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        }
        self.run("git init -q .")

    def program(self, name: str, script: str) -> None:
        """Put a shell script on the PATH."""
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def run(self, script: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run a script as build agents do: with bash, ending at the first command that fails."""
        return subprocess.run(
            ["bash", "-e", "-c", script],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            env={**self.environ, **environ},
        )


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """One without files."""
    return Repository(tmp_path)


@pytest.fixture
def failing(repository: Repository) -> Repository:
    """One whose workspace anybody reaches, among files that are none of our business."""
    write(repository.folder, {"infra/workspace.json": OPEN, "package.json": '{"name": "x"}', "ci.yaml": "on: push\n"})
    return repository


@pytest.fixture
def compliant(repository: Repository) -> Repository:
    """One whose workspace is as it should be."""
    shutil.copy(ROOT / "samples/workspaces/compliant.json", repository.folder / "workspace.json")
    return repository


def recipe(name: str) -> Any:
    """A recipe as parsed; strict, so that it means what it seems to mean."""
    return bundle_yaml((RECIPES / name).read_text(encoding="utf-8"), name)


def github_steps() -> list[dict[str, Any]]:
    """The steps of the only job."""
    (job,) = recipe("github-actions.yml")["jobs"].values()
    steps: list[dict[str, Any]] = job["steps"]
    return steps


# ---------------------------------------------------------------- the page and its pins


def test_the_page_quotes_every_recipe_exactly() -> None:
    """A reader may copy either."""
    page = PAGE.read_text(encoding="utf-8")
    for path in sorted(RECIPES.iterdir()):
        if "-gate" in path.name:  # those of admission have a page of their own
            continue
        language = "sh" if path.suffix == ".sh" else "yaml"
        assert f"```{language}\n{path.read_text(encoding='utf-8')}```\n" in page, path.name
        assert f"(../deploy/ci/{path.name})" in page


def test_every_pin_is_this_version() -> None:
    """What a recipe installs is what its page describes."""
    texts = [PAGE.read_text(encoding="utf-8"), *(path.read_text(encoding="utf-8") for path in RECIPES.iterdir())]
    pins = [pin for text in texts for pin in re.findall(r"policyeng==([\w.]+)|rev: v([\w.]+)", text)]

    assert len(pins) >= 8
    assert {"".join(pin) for pin in pins} == {__version__}


# ---------------------------------------------------------------- build agents


def test_github_actions_annotates_uploads_and_sums_up(failing: Repository) -> None:
    """The steps in their order: the upload and the summary are made although the one before them failed."""
    steps = {step["name"]: step for step in github_steps() if "name" in step}
    install, check = failing.run(steps["Install"]["run"]), failing.run(steps["Check"]["run"])
    summary = failing.run(steps["Summary"]["run"])
    file, line, column = PLACE
    (run,) = json.loads((failing.folder / steps["Upload"]["with"]["sarif_file"]).read_text(encoding="utf-8"))["runs"]
    regions = {one["ruleId"]: one["locations"][0]["physicalLocation"] for one in run["results"]}

    assert (install.returncode, check.returncode, summary.returncode) == (0, 1, 0), install.stderr
    assert f"::error file={file},line={line},col={column},title=AML-NET-001" in check.stdout
    assert regions["AML-NET-001"]["artifactLocation"]["uri"] == file
    assert regions["AML-NET-001"]["region"]["startLine"] == line
    assert Path(failing.environ["GITHUB_STEP_SUMMARY"]).read_text(encoding="utf-8").startswith("## policyeng: ")
    assert {steps[name]["if"] for name in ("Summary", "Upload")} == {"${{ !cancelled() }}"}
    assert recipe("github-actions.yml")["permissions"]["security-events"] == "write"


def test_azure_pipelines_reports_failures_and_publishes(failing: Repository) -> None:
    """Logging commands that the agent obeys, and tests that can be read."""
    install, _, check = (step["script"] for step in recipe("azure-pipelines.yml")["steps"] if "script" in step)
    publish = recipe("azure-pipelines.yml")["steps"][-1]
    installed, checked = failing.run(install), failing.run(check)
    file, line, column = PLACE
    report = JUnitXml.fromfile(str(failing.folder / publish["inputs"]["testResultsFiles"]))

    assert (installed.returncode, checked.returncode) == (0, 1)
    place = f"sourcepath={file};linenumber={line};columnnumber={column};"
    assert f"##vso[task.logissue type=error;{place}code=AML-NET-001;]" in checked.stdout
    assert checked.stdout.splitlines()[-1].startswith("##vso[task.complete result=Failed;]")
    assert report.failures >= 1
    assert publish["condition"] == "succeededOrFailed()"


def test_gitlab_shows_failing_tests_with_their_files(failing: Repository) -> None:
    """The artifact exists although the job failed."""
    job = recipe("gitlab-ci.yml")["policyeng"]
    under_review(failing)
    checked = checked_by("gitlab", failing)
    report = JUnitXml.fromfile(str(failing.folder / job["artifacts"]["reports"]["junit"]))
    cases = {case.classname: case for suite in report for case in suite}

    assert checked.returncode == 1
    assert cases["AML-NET-001"]._elem.get("file") == PLACE[0]
    assert job["artifacts"]["when"] == "always"


def under_review(repository: Repository, weakened: str = 'ignore = ["AML-NET-001"]\n', protected: str = "") -> None:
    """Give the repository a server with a main branch, and a change that weakens the configuration on another."""
    server = repository.folder.parent / "server.git"
    if protected:
        write(repository.folder, {"policyeng.toml": protected})
    else:
        write(repository.folder, {"README.md": "x"})
    commit = "git add -A && git -c user.name=n -c user.email=e@x commit -q -m"
    done = repository.run(
        f"git init -q --bare -b main '{server}' && git checkout -q -b main && git remote add origin 'file://{server}'"
        f" && {commit} base && git push -q origin main && git checkout -q -b change && rm -rf .git/refs/remotes"
    )
    assert done.returncode == 0, done.stderr
    write(repository.folder, {"policyeng.toml": weakened})
    assert repository.run(f"{commit} change").returncode == 0


def checked_by(agent: str, repository: Repository) -> subprocess.CompletedProcess[str]:
    """Take the configuration as the recipe does, and check."""
    temp = repository.folder.parent / "temp"
    temp.mkdir()
    if agent == "gitlab":
        script = "\n".join(recipe("gitlab-ci.yml")["policyeng"]["script"])
        return repository.run(script, CI_MERGE_REQUEST_TARGET_BRANCH_NAME="main", TMPDIR=str(temp))
    if agent == "github":
        step = next(step for step in github_steps() if step.get("name") == "Configuration")
        assert step["env"] == {"BASE": "${{ github.base_ref || github.ref_name }}"}
        file = temp / "env"
        taken = repository.run(step["run"], BASE="main", RUNNER_TEMP=str(temp), GITHUB_ENV=str(file))
        assert taken.returncode == 0, taken.stderr
        name, _, value = file.read_text(encoding="utf-8").rstrip("\n").partition("=")
    else:
        steps = recipe("azure-pipelines.yml")["steps"]
        script = next(step["script"] for step in steps if step.get("displayName") == "Configuration")
        environ = {"SYSTEM_PULLREQUEST_TARGETBRANCH": "refs/heads/main", "AGENT_TEMPDIRECTORY": str(temp)}
        taken = repository.run(script, **environ)
        assert taken.returncode == 0, taken.stderr
        found = re.search(r"^##vso\[task\.setvariable variable=(\w+)\](.+)$", taken.stdout, re.MULTILINE)
        assert found
        name, value = found.groups()
    assert name == "POLICYENG_CONFIG"
    return repository.run(scripts()[agent], POLICYENG_CONFIG=value)


@pytest.mark.parametrize("agent", ["github", "azure", "gitlab"])
@pytest.mark.parametrize("protected", ["", 'ignore = ["AML-NET-103"]\n'])
def test_a_change_cannot_weaken_its_own_check(agent: str, protected: str, failing: Repository) -> None:
    """The configuration of the branch that it goes to counts; where that has none, nothing is configured."""
    under_review(failing, protected=protected)
    assert failing.run("policyeng check . --select AML-NET-001").returncode != 1  # as the change would have it

    checked = checked_by(agent, failing)

    assert checked.returncode == 1, checked.stderr
    assert "AML-NET-001" in (failing.folder / "policyeng.xml").read_text() if agent == "gitlab" else checked.stdout
    if protected and agent != "gitlab":
        assert "ignore AML-NET-103" in checked.stdout


def scripts() -> dict[str, str]:
    """The evaluation step of each build agent."""
    steps = recipe("azure-pipelines.yml")["steps"]
    return {
        "github": next(step["run"] for step in github_steps() if step.get("name") == "Check"),
        "azure": next(step["script"] for step in steps if step.get("displayName") == "Check"),
        "gitlab": recipe("gitlab-ci.yml")["policyeng"]["script"][-1],
    }


@pytest.mark.parametrize("agent", ["github", "azure", "gitlab"])
def test_a_compliant_repository_passes(agent: str, compliant: Repository) -> None:
    """A second run passes, too: the reports of a run are no inputs of the next."""
    for _ in range(2):
        checked = compliant.run(scripts()[agent])
        assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("agent", ["github", "azure", "gitlab"])
def test_a_repository_with_nothing_to_evaluate_does_not_pass(agent: str, repository: Repository) -> None:
    """A path that is misspelt, or a folder that moved, must not be green."""
    write(repository.folder, {"package.json": '{"name": "x"}'})

    assert repository.run(scripts()[agent]).returncode == 2


# ---------------------------------------------------------------- what other tools make


def understood(document: object) -> None:
    """Skip where no format of this version takes what the other tool makes."""
    if not any(each.detect(document) for each in FORMATS.values()):
        pytest.skip("no format reads it")


def terraform(repository: Repository, plan: object) -> None:
    """A stand-in of Terraform that plans the given resources, and shows only its own plan."""
    write(repository.folder.parent, {"plan.json": json.dumps(plan, indent=2)})
    repository.program(
        "terraform",
        f"""case "$*" in
  "plan -input=false -out=tfplan") printf PK > tfplan ;;
  "show -json tfplan") [ -f tfplan ] && cat "{repository.folder.parent / "plan.json"}" ;;
  *) echo "unexpected: $*" >&2; exit 64 ;;
esac""",
    )


def test_a_terraform_plan_is_evaluated(repository: Repository) -> None:
    """With arguments that are handed on."""
    understood(PLAN)
    terraform(repository, PLAN)
    checked = repository.run(f'sh "{RECIPES}/terraform-plan.sh" --scope {GROUP} --format github')

    assert checked.returncode == 1, checked.stderr
    assert re.search(r"^::error file=plan\.json,line=\d+,col=\d+,title=AML-NET-001", checked.stdout, re.MULTILINE)


def test_a_plan_that_fails_is_not_evaluated(repository: Repository) -> None:
    """The plan of an earlier run is not evaluated instead."""
    write(repository.folder, {"plan.json": OPEN})
    repository.program("terraform", "echo broken >&2; exit 1")
    checked = repository.run(f'sh "{RECIPES}/terraform-plan.sh"')

    assert (checked.returncode, checked.stdout) == (1, "")


def bicep(repository: Repository) -> None:
    """A stand-in of the compiler."""
    write(
        repository.folder.parent, {"main.json": json.dumps(TEMPLATE, indent=2), "values.json": json.dumps(PARAMETERS)}
    )
    repository.program(
        "az",
        f"""case "$*" in
  "bicep build --file main.bicep --outfile main.json") cp "{repository.folder.parent}/main.json" . ;;
  "bicep build-params --file main.bicepparam --outfile main.parameters.json")
    cp "{repository.folder.parent}/values.json" main.parameters.json ;;
  *) echo "unexpected: $*" >&2; exit 64 ;;
esac""",
    )


def test_bicep_is_compiled_and_evaluated(repository: Repository) -> None:
    """With the values of its parameters where there are some; without them the outcome is unknown, and reported."""
    understood(TEMPLATE)
    bicep(repository)
    given = f'sh "{RECIPES}/bicep.sh" --select AML-NET-001 --scope {GROUP}'
    without = repository.run(given)
    write(repository.folder, {"main.bicepparam": "using 'main.bicep'\n"})
    valued = repository.run(given)

    assert without.returncode == 0, without.stdout
    assert "1 unknown" in without.stdout
    assert repository.run(f"{given} --strict-unknown").returncode == 1
    assert valued.returncode == 1, valued.stdout
    assert "AML-NET-001" in valued.stdout


def az_ml(repository: Repository, computes: str) -> None:
    """A stand-in of the Azure CLI with a workspace."""
    repository.program(
        "az",
        f"""case "$*" in
  "ml workspace show --resource-group rg-ml --name ws --query id --output tsv") echo "{WORKSPACE}" ;;
  "ml compute list --resource-group rg-ml --workspace-name ws --output json") {computes} ;;
  *) echo "unexpected: $*" >&2; exit 64 ;;
esac""",
    )


def live(repository: Repository, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the recipe for the current workspace."""
    script = " ".join(["bash", f'"{RECIPES}/live-computes.sh"', *arguments])
    return repository.run(script, RESOURCE_GROUP="rg-ml", WORKSPACE="ws")


def test_the_current_state_of_a_workspace_is_evaluated(repository: Repository) -> None:
    """From a pipe."""
    understood(COMPUTES)
    write(repository.folder.parent, {"computes.json": json.dumps(COMPUTES)})
    az_ml(repository, f'cat "{repository.folder.parent}/computes.json"')
    checked = live(repository, "--format", "json")
    report = json.loads(checked.stdout)

    assert checked.returncode == 1, checked.stderr
    assert f"{WORKSPACE}/computes/train" in {finding["resource"] for finding in report["findings"]}


@pytest.mark.parametrize("computes", ["exit 1", "true", "echo '[]'", "echo 'ERROR: not logged in'"])
def test_a_list_that_could_not_be_had_is_never_green(computes: str, repository: Repository) -> None:
    """An Azure CLI that fails prints nothing, or something else."""
    az_ml(repository, computes)

    assert live(repository).returncode == 2


# ---------------------------------------------------------------- pre-commit


def hook() -> dict[str, Any]:
    """The hook that this repository publishes."""
    published: Any = bundle_yaml(HOOKS.read_text(encoding="utf-8"), HOOKS.name)
    (only,) = published
    return dict(only)


def committed(repository: Repository, *staged: str, **changes: object) -> subprocess.CompletedProcess[str]:
    """Run the hook on what a commit would contain: the same hook, with `policyeng` of the PATH."""
    local = {key: value for key, value in hook().items() if key != "minimum_pre_commit_version"}
    config = {"repos": [{"repo": "local", "hooks": [{**local, "language": "system", **changes}]}]}
    write(repository.folder, {".pre-commit-config.yaml": json.dumps(config)})
    repository.run(f"git add {' '.join(staged)}")
    return repository.run(f'"{sys.executable}" -m pre_commit run --verbose')


def test_the_hook_is_one() -> None:
    """Valid for pre-commit itself; the page shows how to use it by its name."""
    valid = subprocess.run([sys.executable, "-m", "pre_commit", "validate-manifest", HOOKS], check=False)

    assert valid.returncode == 0
    assert f"- id: {hook()['id']}" in PAGE.read_text(encoding="utf-8")


def test_the_configurations_of_the_page_are_some(tmp_path: Path) -> None:
    """Valid for pre-commit itself, one with the hook and one with the package."""
    blocks = re.findall(r"^```yaml\n(repos:.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    paths = [tmp_path / f"{number}.yaml" for number in range(len(blocks))]
    for path, block in zip(paths, blocks, strict=True):
        path.write_text(block, encoding="utf-8")

    assert len(blocks) == 2
    assert subprocess.run([sys.executable, "-m", "pre_commit", "validate-config", *paths], check=False).returncode == 0
    own = bundle_yaml(blocks[1], "page")["repos"][0]["hooks"][0]  # type: ignore[index]  # as validated
    for key in ("id", "entry", "files", "pass_filenames", "language"):
        assert own[key] == hook()[key], key


@pytest.mark.parametrize(
    ("path", "taken"),
    [
        *((path, True) for path in ("a.json", "infra/a.JSONC", "a.yml", "b/c.yaml", "x.tfstate", "policyeng.toml")),
        *((path, True) for path in ("pyproject.toml", "infra/policyeng.toml")),
        *((path, False) for path in ("README.md", "a.json.txt", "ruff.toml", "json", "src/a.py", "my-policyeng.toml")),
    ],
)
def test_the_files_that_start_the_hook(path: str, taken: bool) -> None:
    """Documents that may describe a workspace, and our configuration."""
    assert bool(re.search(hook()["files"], path)) is taken


def test_a_commit_with_a_failure_is_stopped(failing: Repository) -> None:
    """With the place of the field."""
    ran = committed(failing, ".")

    assert ran.returncode == 1
    assert "exit code: 1" in ran.stdout
    assert "AML-NET-001" in ran.stdout
    assert ":".join(map(str, ("", *PLACE[1:]))) in ran.stdout


def test_a_commit_that_is_compliant_passes(compliant: Repository) -> None:
    """With the report in words."""
    ran = committed(compliant, ".")

    assert ran.returncode == 0, ran.stdout
    assert "Passed" in ran.stdout
    assert "PASSED: no failures" in ran.stdout


def test_a_commit_of_other_files_starts_nothing(failing: Repository) -> None:
    """Neither prose nor code is evaluated."""
    write(failing.folder, {"README.md": "x"})
    ran = committed(failing, "README.md")

    assert ran.returncode == 0
    assert "no files to check" in ran.stdout


def test_a_commit_is_evaluated_with_its_repository(failing: Repository) -> None:
    """The file that fails need not be the one that changed, and an unrelated one stops nothing by itself."""
    ran = committed(failing, "package.json")

    assert ran.returncode == 1
    assert "AML-NET-001" in ran.stdout


def test_a_commit_that_cannot_be_decided_is_stopped(compliant: Repository) -> None:
    """A broken file that concerns a workspace is no file without one."""
    write(compliant.folder, {"broken.json": OPEN.replace("}", "", 1)})
    ran = committed(compliant, ".")

    assert ran.returncode == 1
    assert "exit code: 2" in ran.stdout
    assert "broken.json:" in ran.stdout


def test_arguments_name_what_is_evaluated(failing: Repository, root: Path) -> None:
    """Those of a user replace the whole repository."""
    write(failing.folder, {"other/workspace.json": (root / "samples/workspaces/compliant.json").read_text("utf-8")})

    assert committed(failing, ".", args=["other"]).returncode == 0
    assert committed(failing, ".", args=["infra"]).returncode == 1
