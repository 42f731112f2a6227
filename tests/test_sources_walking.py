"""Which files below a directory are read: `.gitignore`, `exclude`, links, and files that other options name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import policyeng as api
from policyeng.errors import UsageError
from policyeng.sources import EVERYTHING, FileWalk, Inputs, excluded, read_inputs, resolve_paths
from tests.command import policyeng

WORKSPACES = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.MachineLearningServices/workspaces"


def workspace(path: Path) -> Path:
    """A file with a workspace that is called as the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    resource = {"id": f"{WORKSPACES}/{path.stem}", "type": "Microsoft.MachineLearningServices/workspaces"}
    path.write_text(json.dumps(resource | {"properties": {}}), encoding="utf-8")
    return path


def names(read: Inputs) -> list[str]:
    """The workspaces that were read."""
    return sorted(resource["id"].rpartition("/")[2] for resource in read.snapshot.resources)


def skipped(read: Inputs) -> dict[str, str]:
    """The skipped files, with the beginning of the reason."""
    return {one.place: one.reason.split(";")[0].split(" (")[0] for one in read.ledger}


def test_gitignore_files_apply_below_their_folders(here: Path) -> None:
    """Those above the directory, up to the top of the repository, too; a later pattern wins."""
    for name in ("a", "build/b", "sub/c", "sub/generated/d", "sub/keep", "sub/deep/e"):
        workspace(here / f"repo/{name}.json")
    (here / "repo/.git").mkdir()
    (here / ".gitignore").write_text("*.json\n", encoding="utf-8")  # outside of the repository
    (here / "repo/.gitignore").write_text("# outputs\nbuild/\n\nkeep.json\n", encoding="utf-8")
    (here / "repo/sub/.gitignore").write_text("/generated\n!keep.json\ne.json\nbad[z-a]\n", encoding="utf-8")

    read = read_inputs(["repo"])
    assert names(read) == ["a", "c", "keep"]
    ignored = "ignored by a `.gitignore`"
    assert skipped(read) == dict.fromkeys(["repo/build/", "repo/sub/deep/e.json", "repo/sub/generated/"], ignored)
    assert names(read_inputs(["repo/sub"])) == ["c", "keep"]
    assert names(read_inputs(["repo"], walk=FileWalk(gitignore=False))) == ["a", "b", "c", "d", "e", "keep"]


def test_named_files_are_read_even_if_ignored(here: Path) -> None:
    """A file, and a directory; in the directory, the other patterns still apply."""
    (here / ".git").mkdir()
    (here / ".gitignore").write_text("build/\nx.json\n", encoding="utf-8")
    workspace(here / "build/b.json")
    workspace(here / "build/x.json")

    assert names(read_inputs(["build"])) == ["b"]
    assert names(read_inputs(["build/x.json"])) == ["x"]
    assert names(read_inputs(["build"], walk=FileWalk(excluded(["build/"], here)))) == ["b"]


@pytest.mark.parametrize(
    ("patterns", "left"),
    [
        (["b.json"], ["a", "c"]),
        (["/b.json"], ["a", "b", "c"]),
        (["sub/"], ["a"]),
        (["sub/*", "!sub/b.json"], ["a", "b"]),
        (["**/deep/**"], ["a", "b"]),
        (["*.json", "!c.json"], ["c"]),
    ],
)
def test_exclude_is_written_as_in_a_gitignore(here: Path, patterns: list[str], left: list[str]) -> None:
    """Relative to the working directory."""
    for name in ("a", "sub/b", "sub/deep/c"):
        workspace(here / f"{name}.json")

    assert names(read_inputs(["."], walk=FileWalk(excluded(patterns, here)))) == left
    assert len(api.load_snapshot(".", exclude=patterns).resources) == len(left)


@pytest.mark.parametrize("pattern", ["", "# x", "!", "a[z-a]"])
def test_invalid_patterns_are_refused(here: Path, pattern: str) -> None:
    """It would silently exclude nothing."""
    with pytest.raises(UsageError, match="is not a file pattern"):
        excluded([pattern], here)


def test_a_folder_whose_name_has_signs_of_patterns(here: Path) -> None:
    """Those signs are literal."""
    workspace(here / "a [1]*!/b.json")
    workspace(here / "a [1]*!/c.json")

    assert names(read_inputs(["."], walk=FileWalk(excluded(["b.json"], here / "a [1]*!")))) == ["c"]


def test_links_do_not_lead_out_of_a_directory(here: Path) -> None:
    """They are not followed to themselves, either; one to another file of the directory is that file."""
    workspace(here / "d/a.json")
    secret = here / "secret.json"
    secret.write_text("root:x:0\n", encoding="utf-8")
    (here / "d/loop.json").symlink_to("loop.json")
    (here / "d/out.json").symlink_to(secret)
    (here / "d/same.json").symlink_to("a.json")
    (here / "d/folder").symlink_to(here)
    for name in ("node_modules", "__pycache__"):
        workspace(here / f"d/{name}/x.json")

    read = read_inputs(["d"])
    assert (names(read), read.problems) == (["a"], ())
    assert skipped(read) == {
        "d/__pycache__/": "a directory that tools create",
        "d/node_modules/": "a directory that tools create",
        "d/folder/": "a link to a directory, which is not followed",
        "d/loop.json": "a link to itself",
        "d/out.json": "a link to outside of the directory",
    }
    assert not any("root" in one.reason for one in read.ledger)


def test_files_that_other_options_name_are_no_input(here: Path) -> None:
    """Such as the report that was written the last time."""
    workspace(here / "a.json")
    workspace(here / "b.json")
    walk = EVERYTHING._replace(others=resolve_paths(["b.json", None]))

    assert skipped(read_inputs(["."], walk=walk)) == {"b.json": "another option names it"}


@pytest.mark.slow
def test_every_command_takes_the_options(here: Path) -> None:
    """By flag, by variable, and by the configuration, whose patterns are relative to it."""
    workspace(here / "in/good.json")
    (here / "in/bad.json").write_text('{"id": "/subscriptions/', encoding="utf-8")
    (here / "empty.json").write_text('{"snapshotVersion": 1}', encoding="utf-8")
    (here / "in/.gitignore").write_text("bad.json", encoding="utf-8")
    lines = [
        ["check", "in"],
        ["diff", "in", "in", "--no-causes"],
        ["admit", "in", "--snapshot", "empty.json"],
    ]
    for line in lines:
        assert policyeng(*line).returncode == 1 - (line[0] == "diff")
        assert "bad.json" in policyeng(*line, "--show-skipped").stderr
        assert policyeng(*line, "--no-gitignore").returncode == 2
        assert policyeng(*line, "--no-gitignore", "--exclude", "bad.json").returncode < 2
        assert policyeng(*line, "--no-gitignore", POLICYENG_EXCLUDE="x,/in/bad*").returncode < 2
        assert policyeng(*line, POLICYENG_NO_GITIGNORE="1").returncode == 2
    (here / "policyeng.toml").write_text('exclude = ["/in/bad.json"]', encoding="utf-8")
    for line in lines:
        assert policyeng(*line, "--no-gitignore").returncode < 2
    assert policyeng("check", "in", "--exclude", "!").returncode == 3
