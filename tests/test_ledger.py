"""What is not read is on one ledger, and no name, folder, suffix or ignore rule takes a document past a gate."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import chdir
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import policyeng as api
from policyeng.configuration import Settings, resolve
from policyeng.context import walk_of
from policyeng.models import LedgerEntry, leaves_undecided
from policyeng.sources import Inputs, left_out, read_inputs
from policyeng.sources.relevance import mentions_machine_learning
from tests.command import ROOT, policyeng
from tests.effort import effort

LAW = settings(deadline=None, derandomize=True, max_examples=effort(80, 1500), suppress_health_check=list(HealthCheck))
STRICT = "--strict-unknown"
TYPE = "Microsoft.MachineLearningServices/workspaces"
WORKSPACE = f"/subscriptions/s/resourceGroups/rg/providers/{TYPE}/open"
OPEN = {"id": WORKSPACE, "type": TYPE, "name": "open", "properties": {"publicNetworkAccess": "Enabled"}}
FORMATS = ROOT / "samples/formats"
GOOD = json.dumps({"snapshotVersion": 1, "resources": []}).encode()


def documents() -> Iterator[tuple[str, bytes]]:
    """A document of each format that fails, with its usual name; the names of parameter files are theirs alone."""
    for path in sorted(FORMATS.rglob("*.*")):
        if "parameters" not in path.name:
            yield path.name, path.read_bytes()
    yield "rest.json", json.dumps(OPEN).encode()
    yield "native.json", json.dumps({"snapshotVersion": 1, "resources": [OPEN]}).encode()
    yield "changes.json", json.dumps([OPEN]).encode()
    yield "compute.yml", b"name: nodes\ntype: amlcompute\nmin_instances: 4\n"
    yield "attached.yml", b"name: nodes\ntype: virtualmachine\nresource_id: /subscriptions/s/x\n"
    yield "job.yml", b"command: python x\nenvironment:\n  image: docker.io/x\ncompute: gpu\n"
    yield "pipeline.yml", b"type: pipeline\njobs:\n  a:\n    type: command\n    command: x\n    compute: y\n"
    yield "sweep.yml", b"type: sweep\ntrial:\n  command: x\nsearch_space: {}\n"
    yield "store.yml", b"name: d\ntype: azure_blob\naccount_name: a\ncontainer_name: c\n"
    yield "registry.yml", b"name: r\nlocation: x\nreplication_locations:\n- location: x\n"
    schema = "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#"
    computed = {"type": "[concat('Microsoft.Machine', 'LearningServices/workspaces')]", "name": "w"}
    resources = [{**computed, "apiVersion": "2024-04-01", "properties": {"publicNetworkAccess": "Enabled"}}]
    template = {"$schema": schema, "contentVersion": "1.0.0.0", "resources": resources}
    yield "computed.json", json.dumps(template).encode()


DOCUMENTS = dict(documents())
FOLDERS = (".infra", ".github", ".venv/lib", "node_modules/x", "__pycache__", ".azure", "build", "a/.b/c", "a/build/.c")
SUFFIXES = (*(".json", ".yaml", ".jsonc", ".json5", ".template", ".armtemplate", ".txt", ".md", ".py", ".bak", ""),)
RULES = ("*", "*.*", "/build/", "main*", "**/c/**", "[a-z]*", "build\nmain.json")


def as_it_is(content: bytes) -> bytes:
    """The document itself."""
    return content


def commented(content: bytes) -> bytes:
    """After more comments than the beginning that shows what a file is."""
    mark = b"//" if content.lstrip().startswith((b"{", b"[")) else b"#"
    return (mark + b" generated\n") * 500 + content


def spaced(content: bytes) -> bytes:
    """With more space before its first member than that beginning."""
    text = content.lstrip()
    return text[:1] + b" " * 9000 + text[1:] if text.startswith((b"{", b"[")) else b"\n" * 9000 + content


def in_utf_16(content: bytes) -> bytes:
    """In another encoding."""
    return content.decode().encode("utf-16")


def escaped(content: bytes) -> bytes:
    """With the words that name Machine Learning escaped, where the document is JSON."""
    return content.replace(b"Machine", b"\\u004dachine") if content.lstrip().startswith((b"{", b"[")) else content


def after_text(content: bytes) -> bytes:
    """After a document that is a text, in YAML."""
    return content if content.lstrip().startswith((b"{", b"[")) else b"a text\n---\n" + content


def with_carriage_returns(content: bytes) -> bytes:
    """With the line breaks of old files, after a comment."""
    return content if content.lstrip().startswith((b"{", b"[")) else b"# c\r" + content.replace(b"\n", b"\r")


def with_next_lines(content: bytes) -> bytes:
    """After a comment that ends with another line break of YAML 1.1."""
    return content if content.lstrip().startswith((b"{", b"[")) else b"# c\xc2\x85" + content


def after_another_entry(content: bytes) -> bytes:
    """In a list, after what is no resource, where the document is one."""
    is_resource = content.startswith(b'{"id"')
    return b"[null,\n" + content + b"]" if is_resource else content


FORMS: tuple[Callable[[bytes], bytes], ...] = (
    *(as_it_is, commented, spaced, in_utf_16, escaped),
    *(after_text, with_carriage_returns, with_next_lines, after_another_entry),
)


def hide(folder: Path, name: str, content: bytes, inside: str, rule: str, config: bool) -> Path:
    """Write a document beside a good one, and a rule that may exclude it."""
    (folder / inside).mkdir(parents=True, exist_ok=True)
    (folder / "good.json").write_bytes(GOOD)
    (folder / ".git").mkdir(exist_ok=True)
    if rule and config:
        patterns = [pattern for pattern in rule.split("\n") if pattern] + ["!good.json"]
        (folder / "policyeng.toml").write_text(f"exclude = {json.dumps(patterns)}\n", encoding="utf-8")
    elif rule:
        (folder / ".gitignore").write_text(f"{rule}\n!good.json\n", encoding="utf-8")
    path = folder / inside / name
    path.write_bytes(content)
    return path


def read_here(folder: Path, *, all_files: bool = False) -> Inputs:
    """Read a directory as a command in it does."""
    walk = walk_of(resolve({}, {}, folder), all_files=all_files)
    with chdir(folder):
        return read_inputs(["."], walk=walk)


def is_noticed(read: Inputs) -> bool:
    """Whether a gate cannot pass it as a directory without the document."""
    is_error = any(problem.level == "error" for problem in read.problems)
    return bool(read.snapshot.resources) or is_error or leaves_undecided(read.ledger, Settings(strict_unknown=True))


@given(
    st.sampled_from(sorted(DOCUMENTS)),
    st.sampled_from(("", *FOLDERS)),
    st.one_of(st.just("main"), st.sampled_from((".main", "Dockerfile", "a b", "README"))),
    st.sampled_from(SUFFIXES),
    st.sampled_from(("", *RULES)),
    st.booleans(),
    st.sampled_from(FORMS),
)
@LAW
def test_no_name_or_rule_hides_a_document(
    document: str, inside: str, name: str, suffix: str, rule: str, config: bool, form: Callable[[bytes], bytes]
) -> None:
    """Wherever it is, it is read, or an error, or a relevant entry; with `--all-files` it is never left out."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve()
        hide(folder, f"{name}{suffix}" or "main", form(DOCUMENTS[document]), inside, rule, config)

        assert is_noticed(read_here(folder))
        every = read_here(folder, all_files=True)
        assert every.snapshot.resources or any(problem.level == "error" for problem in every.problems)


@pytest.mark.attack
@pytest.mark.parametrize("name", [".infra/main.json", "node_modules/main.json", "main.template", "build/main.json"])
@pytest.mark.parametrize("command", ["check", "admit"])
def test_a_hidden_failure_never_passes_strictly(here: Path, command: str, name: str) -> None:
    """Without `--strict-unknown` it is counted; `--show-skipped` lists it, and the JSON; with all files it fails."""
    hide(here / "in", Path(name).name, json.dumps(OPEN).encode(), str(Path(name).parent), "build/", config=False)
    (here / "empty.json").write_bytes(GOOD)
    (here / "in/good.json").write_text(json.dumps({**OPEN, "id": f"{WORKSPACE}2", "properties": {}}), encoding="utf-8")
    line = [command, "in", "--select", "AML-NET-001", "--fail-on", "critical"]
    line += ["--snapshot", "empty.json"] if command == "admit" else []

    loose = policyeng(*line)
    assert loose.returncode == 0
    assert "1 could hold or change Machine Learning resources" in " ".join(loose.stdout.split())
    strict = policyeng(*line, STRICT, "--format", "json")
    report = json.loads(strict.stdout)
    assert strict.returncode == 1
    [entry] = [entry for entry in report["ledger"] if entry["relevant"]]
    assert entry["place"] in (f"in/{name}", f"in/{name.split('/')[0]}/")
    assert entry["place"] in policyeng(*line, "--show-skipped").stderr
    every = policyeng(*line[:4], *line[6:], "--all-files", "--format", "json")
    assert every.returncode == 1
    assert [one for one in json.loads(every.stdout)["ledger"] if one["relevant"]] == []


@pytest.mark.parametrize("name", [".git", "a/.git", ".git/main.json", "a/.git/x", ".a/.git/main", "a/.git/b/m.txt"])
def test_a_name_of_git_hides_nothing(here: Path, name: str) -> None:
    """What is there is not read, but on the ledger; the files of git itself are not."""
    (here / name).parent.mkdir(parents=True, exist_ok=True)
    (here / name).write_text(json.dumps(OPEN), encoding="utf-8")
    (here / "good.json").write_bytes(GOOD)
    for all_files in (False, True):
        assert is_noticed(read_here(here, all_files=all_files))
    (here / name).write_text(f"ref: refs/heads/{TYPE}\n", encoding="utf-8")
    assert not is_noticed(read_here(here))


@pytest.mark.parametrize("encoding", ["utf-32", "utf-32-le", "utf-16-be"])
def test_an_encoding_hides_no_document(here: Path, encoding: str) -> None:
    """One that is an error where it is read is relevant where it is not."""
    path = hide(here, "main.json", json.dumps(OPEN).encode(encoding), ".infra", "", config=False)
    assert is_noticed(read_here(here))
    path.write_bytes(b"\0" + json.dumps(OPEN).encode())
    assert is_noticed(read_here(here))


@pytest.mark.parametrize("escape", ["\\u006d", "\\x6d", "\\U0000006D", "m\\\n  ", "m\\\r  "])
def test_an_escape_hides_no_document(here: Path, escape: str) -> None:
    """Every way to write a letter in YAML."""
    text = f'apiVersion: "{escape}achinelearningservices.azure.com/v1api20240401"\nkind: Workspace\n'
    text += "metadata:\n  name: w\nspec:\n  owner:\n    name: rg\n  publicNetworkAccess: Enabled\n"
    hide(here, "main.yaml", text.encode(), ".infra", "", config=False)
    assert is_noticed(read_here(here))


PUT = {"type": f"{TYPE}@2024-04-01", "resource_id": WORKSPACE, "method": "PUT", "body": {"tags": {}}}
ACTION = {
    "address": "azapi_resource_action.open",
    "mode": "managed",
    "type": "azapi_resource_action",
    "name": "open",
    "provider_name": "registry.terraform.io/azure/azapi",
}
UNREAD = {
    "linked template": {
        "$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
        "contentVersion": "1.0.0.0",
        "resources": [
            {
                "type": "Microsoft.Resources/deployments",
                "apiVersion": "2022-09-01",
                "name": "more",
                "properties": {"mode": "Incremental", "templateLink": {"uri": "https://contoso.example/x.json"}},
            }
        ],
    },
    "native": {"snapshotVersion": 1, "resources": [OPEN], "incomplete": ["computes: forbidden"]},
    "page": {"value": [OPEN], "nextLink": "https://management.azure.com/next"},
    "action": {
        "format_version": "1.2",
        "terraform_version": "1.9.0",
        "planned_values": {"root_module": {"resources": [{**ACTION, "values": PUT}]}},
        "resource_changes": [{**ACTION, "change": {"actions": ["create"], "before": None, "after": PUT}}],
    },
}


@pytest.mark.attack
@pytest.mark.parametrize("name", [*sorted(DOCUMENTS), *UNREAD])
def test_admit_is_as_strict_as_check(here: Path, name: str) -> None:
    """What is undecided or failing as a state is not allowed as a change of an empty state."""
    file = here / (name if name in DOCUMENTS else "main.json")
    file.write_bytes(DOCUMENTS[name] if name in DOCUMENTS else json.dumps(UNREAD[name]).encode())
    (here / "empty.json").write_bytes(GOOD)

    if policyeng("check", file.name, STRICT).returncode:
        assert policyeng("admit", file.name, "--snapshot", "empty.json", STRICT).returncode in (1, 2)
        assert policyeng("admit", file.name, "--snapshot", "empty.json", "--whole", STRICT).returncode in (1, 2)


IRRELEVANT = {
    "README.md": f"# Workspaces\n\nNote: use `{TYPE}`\n\n```yaml\n$schema: https://azuremlschemas.azureedge.net/x\n```\n",
    "BADGE.md": f"[![build](x)](y) {TYPE}\n",
    "client.py": f'"""Client."""\n\nTYPE = {{"type": "{TYPE}"}}\n',
    "main.js": f'/* a client */\nconst type = {{"type": "{TYPE}"}};\n',
    "notes.ipynb": json.dumps({"cells": [{"source": [TYPE]}], "nbformat": 4}),
    "settings.json": json.dumps({"yaml.schemas": {"https://azuremlschemas.azureedge.net/x": "*.yml"}}),
    "report.json": json.dumps({"reportVersion": 1, "findings": [{"resourceType": TYPE}]}),
    "train.yml": "on: push\njobs:\n  a:\n    steps:\n    - run: az ml compute create --type amlcompute\n",
    "chart.tpl": f"{{{{ if .Values.x }}}}\ntype: {TYPE}\n",
    "empty": "",
    "storage.json": json.dumps({"id": "/subscriptions/s", "type": "Microsoft.Storage/storageAccounts"}),
}


def test_what_only_mentions_machine_learning_is_not_relevant(here: Path) -> None:
    """Programs, pages and packages in a virtual environment do not make a run undecided, nor does their number."""
    for folder in (".venv/lib", "node_modules/azure", ""):
        (here / folder).mkdir(parents=True, exist_ok=True)
        for name, text in IRRELEVANT.items():
            if folder or not name.endswith((".json", ".yml")):
                (here / folder / name).write_text(text, encoding="utf-8")
    (here / "a.json").write_bytes(GOOD)

    ledger = read_inputs(["."]).ledger
    assert [entry for entry in ledger if entry.relevant] == []
    assert {".venv/", "node_modules/"} <= {entry.place for entry in ledger}


def test_an_exclusion_of_the_operator_is_a_decision(here: Path) -> None:
    """By option, by variable, in a named file, or in one outside of the directory; not in one that is found in it."""
    hide(here / "repo", "main.json", json.dumps(OPEN).encode(), "", "", config=False)
    (here / "repo/good.json").write_text(
        json.dumps({**OPEN, "id": f"{WORKSPACE}2", "properties": {}}), encoding="utf-8"
    )
    line = ["check", "repo", STRICT, "--select", "AML-NET-001", "--fail-on", "critical", "--show-skipped"]
    for ran in (policyeng(*line, "--exclude", "main.json"), policyeng(*line, POLICYENG_EXCLUDE="main.json")):
        assert (ran.returncode, "repo/main.json: excluded by `exclude`\n" in ran.stderr) == (0, True)
    (here / "policyeng.toml").write_text('exclude = ["main.json"]', encoding="utf-8")
    assert policyeng(*line).returncode == 0
    (here / "policyeng.toml").rename(here / "repo/policyeng.toml")
    assert policyeng(*line, "--config", "repo/policyeng.toml").returncode == 0
    inside = [*line[:1], ".", *line[2:]]
    ran = policyeng(*inside, folder=here / "repo")
    assert (ran.returncode, "excluded by `exclude`; it is about Machine Learning" in ran.stderr) == (1, True)
    assert policyeng(*inside, "--all-files", "--fail-on", "low", folder=here / "repo").returncode == 1
    assert policyeng(*inside, "--all-files", "--exclude", "main.json", folder=here / "repo").returncode == 0


def test_too_many_files_are_undecided(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits count names, files and bytes, not time; documents are looked at before other files."""
    (here / ".many").mkdir()
    for number in range(6):
        (here / f".many/{number}.py").write_text("import os\n", encoding="utf-8")
    (here / ".many/a.json").write_text(json.dumps({"a": 1}), encoding="utf-8")
    (here / "a.json").write_bytes(GOOD)
    for limit in ("MOST_NAMES", "MOST_FILES", "MOST_BYTES"):
        with monkeypatch.context() as patched:
            patched.setattr(left_out, limit, 6 if limit != "MOST_BYTES" else 5)
            [entry] = read_inputs(["."]).ledger
        assert (entry.place, entry.relevant) == (".many/", True)
        assert entry.reason.endswith("too many files to look at")
    (here / ".many/a.json").write_text(json.dumps(OPEN), encoding="utf-8")
    monkeypatch.setattr(left_out, "MOST_FILES", 1)
    assert read_inputs(["."]).ledger[0].reason.endswith("`.many/a.json` is about Machine Learning")


@pytest.mark.attack
def test_links_and_pipes(here: Path) -> None:
    """Links are looked through, in a circle and to nothing, and a pipe is never opened."""
    (here / "out").mkdir()
    (here / "out/main.json").write_text(json.dumps(OPEN), encoding="utf-8")
    hide(here / "in", "x.txt", b"", ".links", "", config=False)
    (here / "in/.links/self").symlink_to(here / "in/.links")
    (here / "in/.links/none").symlink_to(here / "none")
    (here / "in/folder").symlink_to(here / "out")
    (here / "in/file.json").symlink_to(here / "out/main.json")
    os.mkfifo(here / "in/pipe.json")

    relevant = {entry.place: entry.relevant for entry in read_inputs(["in"]).ledger}
    assert relevant == {"in/.links/": False, "in/folder/": True, "in/file.json": True, "in/pipe.json": True}


def test_a_mounted_volume_is_read_once(here: Path) -> None:
    """Kubernetes mounts files as links into a hidden directory; what is read so is not left out."""
    hide(here / "state", "main.json", json.dumps(OPEN).encode(), "..2026_06_01", "", config=False)
    (here / "state/..data").symlink_to("..2026_06_01")
    (here / "state/main.json").symlink_to("..data/main.json")

    read = read_inputs(["state"])
    assert len(read.snapshot.resources) == 1
    assert [entry for entry in read.ledger if entry.relevant] == []


def test_secrets_in_places_and_reasons_are_masked() -> None:
    """Entries are shown to readers, as problems are."""
    entry = LedgerEntry(place="a password=hunter2", reason="b password=hunter2", relevant=True)
    assert "hunter2" not in f"{entry.place}{entry.reason}"


def test_a_snapshot_carries_its_ledger(here: Path) -> None:
    """An evaluation in Python counts it as the command does."""
    hide(here / "in", "main.json", json.dumps(OPEN).encode(), ".infra", "", config=False)
    snapshot = api.load_snapshot("in")
    evaluation = api.evaluate(api.load_bundle(), snapshot, strict_unknown=True)

    assert [entry.place for entry in snapshot.ledger] == ["in/.infra/"]
    assert evaluation.ledger == snapshot.ledger
    assert evaluation.exit_code > 0
    assert len(api.load_snapshot("in", all_files=True).resources) == 1


@pytest.mark.parametrize(
    "text", [b'{"type": "\\u004dicrosoft.MachineLearningServices\\/x"}', b'"azureml\\\n  schemas"']
)
def test_escapes_hide_no_mention(text: bytes) -> None:
    """They are read as the parsers read them."""
    assert mentions_machine_learning(text)
