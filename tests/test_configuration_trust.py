"""A configuration that a search finds counts only where no other user could have written it."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from policyeng.audit.notifications import address_of, require_expandable
from policyeng.configuration import resolve
from policyeng.configuration.toml_file import require_trusted
from policyeng.errors import UsageError
from tests.command import policyeng

ANOTHER = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to other users")


def layout(root: Path, text: str = 'ignore = ["AML-NET-001"]\n') -> tuple[Path, Path]:
    """A configuration in a directory, and the directory below it in which policyeng runs."""
    work = root / "shared" / "job"
    work.mkdir(parents=True)
    (root / "shared").chmod(0o755)
    path = root / "shared" / "policyeng.toml"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o644)
    return path, work


def test_an_own_configuration_in_a_parent_directory_counts(tmp_path: Path) -> None:
    """The usual case, with the file that it came from."""
    path, work = layout(tmp_path)

    settings = resolve({}, {}, work)

    assert (settings.ignore, settings.file) == (("AML-NET-001",), path)


@pytest.mark.attack
@as_root
@pytest.mark.parametrize("name", ["policyeng.toml", "pyproject.toml"])
def test_a_file_of_another_user_in_a_parent_directory_is_refused(tmp_path: Path, name: str) -> None:
    """The message names the file, its owner and what to do; a `pyproject.toml` without settings is passed by."""
    path, work = layout(tmp_path)
    path = path.rename(path.with_name(name))
    if name == "pyproject.toml":
        path.write_text("[project]\n", encoding="utf-8")
        os.chown(path, ANOTHER, -1)
        assert resolve({}, {}, work).file is None
        path.write_text('[tool.policyeng]\nignore = ["AML-NET-001"]\n', encoding="utf-8")
    os.chown(path, ANOTHER, -1)

    with pytest.raises(UsageError) as refused:
        resolve({}, {}, work)

    assert refused.value.exit_code == 3
    for part in (str(path), "another user (nobody)", "--config FILE", "POLICYENG_CONFIG", "change the owner"):
        assert part in str(refused.value)
    assert refused.value.place == (str(path),)


@as_root
def test_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    """Its owner can put any file of ours there, or move it away; a user without a name is shown as a number."""
    path, work = layout(tmp_path)
    os.chown(path.parent, 54321, -1)

    with pytest.raises(UsageError, match=r"its directory belongs to another user \(uid 54321\)"):
        resolve({}, {}, work)


@as_root
def test_a_link_of_another_user_is_refused(tmp_path: Path) -> None:
    """Else they could choose one of our files for us."""
    path, work = layout(tmp_path)
    kept = path.rename(tmp_path / "lax.toml")
    path.symlink_to(kept)
    os.chown(path, ANOTHER, -1, follow_symlinks=False)

    with pytest.raises(UsageError, match="its file belongs to another user"):
        resolve({}, {}, work)


@as_root
def test_a_link_to_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    """Whoever owns the link, the other user decides what is read."""
    path, work = layout(tmp_path)
    kept = path.rename(tmp_path / "lax.toml")
    path.symlink_to(kept)
    os.chown(kept, ANOTHER, -1)

    with pytest.raises(UsageError, match="its file belongs to another user"):
        resolve({}, {}, work)


@as_root
@pytest.mark.parametrize("owner", [0, 4711])
def test_files_of_root_and_of_the_user_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: int) -> None:
    """For a user other than root, in a directory of yet another user."""
    path, work = layout(tmp_path)
    for each in (path, path.parent):
        os.chown(each, owner, -1)
    os.chown(work, ANOTHER, -1)
    monkeypatch.setattr("os.geteuid", lambda: 4711)

    assert resolve({}, {}, work).file == path


@as_root
def test_a_file_of_another_user_where_policyeng_runs_is_refused(tmp_path: Path) -> None:
    """As in /tmp, where anyone may put one."""
    path, _ = layout(tmp_path)
    path.parent.chmod(0o1777)
    os.chown(path, ANOTHER, -1)

    with pytest.raises(UsageError, match="belongs to another user"):
        resolve({}, {}, path.parent)


@as_root
def test_a_checkout_of_another_user_counts(tmp_path: Path) -> None:
    """As it is in a container: whoever owns the directory where policyeng runs could put a configuration there."""
    path, work = layout(tmp_path)
    for each in (path, path.parent, work):
        os.chown(each, ANOTHER, -1)

    assert resolve({}, {}, work).ignore == ("AML-NET-001",)


@as_root
@pytest.mark.parametrize(
    ("given", "counts"),
    [(str(ANOTHER), True), ("1", False), ("", False), ("-1", False), ("\u0666\u0665\u0665\u0663\u0664", False)],
)
def test_under_sudo_the_files_of_the_caller_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, counts: bool
) -> None:
    """As in git; a number in other digits than those of ASCII is none."""
    path, work = layout(tmp_path)
    os.chown(path, ANOTHER, -1)
    monkeypatch.setenv("SUDO_UID", given)
    if counts:
        assert resolve({}, {}, work).ignore == ("AML-NET-001",)
        monkeypatch.setattr("os.geteuid", lambda: 4711)  # not root: then the variable has no effect
    with pytest.raises(UsageError, match="belongs to another user"):
        resolve({}, {}, work)


@pytest.mark.attack
@pytest.mark.parametrize(
    ("file", "folder", "refused"),
    [
        (0o644, 0o755, ""),
        (0o664, 0o755, "its file"),
        (0o646, 0o755, "its file"),
        (0o644, 0o775, "its directory"),
        (0o644, 0o757, "its directory"),
        (0o644, 0o1777, ""),
        (0o666, 0o1777, "its file"),
        (0o1666, 0o755, "its file"),
    ],
)
def test_what_others_can_write_to_is_refused(tmp_path: Path, file: int, folder: int, refused: str) -> None:
    """In a parent directory; a directory with the sticky bit protects the files in it."""
    path, work = layout(tmp_path)
    path.chmod(file)
    path.parent.chmod(folder)

    if refused:
        owner = pwd.getpwuid(os.geteuid()).pw_name
        with pytest.raises(UsageError, match=f"write to {refused} .owner {owner}, mode .*chmod go-w") as raised:
            require_trusted(path, work)
        assert raised.value.place == (str(path),)
    else:
        require_trusted(path, work)
    require_trusted(path, path.parent)  # where policyeng runs, modes are the user's own business


def test_a_named_file_counts_whoever_owns_it(tmp_path: Path) -> None:
    """By a flag and by the variable of the environment."""
    path, work = layout(tmp_path)
    path.chmod(0o666)
    if os.geteuid() == 0:
        os.chown(path, ANOTHER, -1)

    assert resolve({}, {}, work, path).ignore == ("AML-NET-001",)
    assert resolve({}, {"POLICYENG_CONFIG": str(path)}, work).ignore == ("AML-NET-001",)


def test_without_owners_nothing_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows."""
    path, work = layout(tmp_path)
    path.chmod(0o666)
    monkeypatch.delattr("os.geteuid")

    require_trusted(path, work)


NOTIFY = '[[notify]]\nname = "hook"\nurl = "json://127.0.0.1:9/${MY_SECRET}"\n'


def test_a_configuration_of_a_parent_directory_gets_nothing_of_the_environment(tmp_path: Path) -> None:
    """It was not named by anybody; in the directory itself, or named, it is."""
    path, work = layout(tmp_path, NOTIFY)
    environ = {"MY_SECRET": "hunter2"}
    [found] = resolve({}, {}, work).notify
    [named] = resolve({}, {}, work, path).notify
    [here] = resolve({}, {}, path.parent).notify

    with pytest.raises(UsageError, match=r"`\$\{MY_SECRET\}` is not expanded.* parent directory; name it with"):
        address_of(found, environ)
    assert [address_of(each, environ)[-7:] for each in (named, here)] == ["hunter2", "hunter2"]
    plain = found.model_copy(update={"url": named.url.__class__("json://127.0.0.1:9/x")})
    require_expandable(plain)


@pytest.mark.attack
@pytest.mark.parametrize("command", [("run",), ("schedule", "--once"), ("notify", "--test")])
def test_commands_that_notify_refuse_before_they_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """So that no audit is made that cannot be reported; others do not need the URL."""
    layout(tmp_path, '[[estates]]\nname = "e"\ninputs = ["x.json"]\nevery = "P1D"\n' + NOTIFY)
    monkeypatch.chdir(tmp_path / "shared" / "job")
    monkeypatch.setenv("MY_SECRET", "hunter2")

    ran = policyeng("audit", *command, "--store", f"sqlite:///{tmp_path / 'a.db'}")

    assert (ran.returncode, ran.stdout) == (3, "")
    assert "`${MY_SECRET}` is not expanded" in ran.stderr
    assert "--config" in ran.stderr
    assert "hunter2" not in ran.stderr
    assert not (tmp_path / "a.db").exists()
    assert policyeng("policies", "list").returncode == 0
