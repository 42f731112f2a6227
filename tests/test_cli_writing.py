"""Files that the command line names are written whole, at the given path, or not at all with the reason."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from policyeng.cli.files import write
from policyeng.errors import UsageError
from tests.bundles import deny_when, rego
from tests.bundles import write as write_bundle
from tests.command import policyeng


def test_an_existing_file_is_replaced_whole_and_nothing_is_left_next_to_it(tmp_path: Path) -> None:
    """Shorter than before, text as UTF-8 without a change of its line ends, the mode kept, a reader undisturbed."""
    path = tmp_path / "report"
    path.write_text("longer than what follows", encoding="utf-8")
    path.chmod(0o640)
    with path.open(encoding="utf-8") as reader:
        write(path, "ä\r\n", "report")
        assert reader.read() == "longer than what follows"

    assert path.read_bytes() == "ä\r\n".encode()
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_a_new_report_is_private_and_a_policy_is_not(tmp_path: Path, umask: int) -> None:
    """Whatever the umask: reports have the names and values of an estate."""
    before = os.umask(umask)
    try:
        write(tmp_path / "report", "x", "report")
        write(tmp_path / "policy", "x", "policy", private=False)
    finally:
        os.umask(before)

    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {"report": 0o600, "policy": 0o666 & ~umask}


def test_a_link_is_followed(tmp_path: Path) -> None:
    """To what is there, and to what is not there yet; one that leads to itself leads nowhere, and is replaced."""
    (tmp_path / "to").mkdir()
    for name in ("old", "new"):
        (tmp_path / name).symlink_to(Path("to") / name)
    (tmp_path / "to" / "old").write_bytes(b"old")
    for name in ("old", "new"):
        write(tmp_path / name, b"x", "report")

        assert (tmp_path / name).is_symlink()
        assert (tmp_path / "to" / name).read_bytes() == b"x"
    (tmp_path / "circle").symlink_to("circle")
    write(tmp_path / "circle", b"x", "report")

    assert (tmp_path / "circle").read_bytes() == b"x"


def test_a_device_and_a_pipe_are_written_to(tmp_path: Path) -> None:
    """Neither is put out of the way by a file of its name."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write(pipe, b"x", "report")
    reader.join()
    write(Path(os.devnull), b"x", "report")

    assert read == [b"x"]
    assert pipe.is_fifo()
    assert Path(os.devnull).is_char_device()


@pytest.mark.parametrize("number", [errno.EROFS, errno.EBUSY, errno.EACCES])
def test_a_file_that_cannot_be_replaced_is_written_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """As one that is mounted alone into a container: it may be written, and nothing may be put in its place."""

    def refuse(*_: object) -> Path:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "replace", refuse)
    existing = tmp_path / "existing"
    existing.write_bytes(b"before")
    write(existing, b"after", "report")

    assert existing.read_bytes() == b"after"
    with pytest.raises(UsageError, match=f"cannot write the report: {os.strerror(number).lower()}"):
        write(tmp_path / "new", b"x", "report")
    assert list(tmp_path.iterdir()) == [existing]


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The half that was written goes; nothing else is tried."""
    whole = Path.write_bytes

    def half(path: Path, octets: bytes) -> int:
        whole(path, octets[:1])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    existing = tmp_path / "existing"
    existing.write_bytes(b"before")
    monkeypatch.setattr(Path, "write_bytes", half)

    with pytest.raises(UsageError, match="no space left"):
        write(existing, b"after", "report")
    assert existing.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [existing]


@pytest.mark.parametrize(("where", "why"), [("no/x", "no such file or directory"), ("folder", "is a directory")])
def test_every_command_names_the_file_that_it_cannot_write(tmp_path: Path, where: str, why: str) -> None:
    """With the place, as a wrong use: exit 3."""
    files = {"p/area/a/a.rego": rego("a", deny_when("false"))}
    files["p/area/a/cases.yaml"] = "baseline: workspace\npass:\n  any: {}\n"
    write_bundle(tmp_path, files)
    (tmp_path / "folder").mkdir()
    sample = str(Path(__file__).parents[1] / "samples" / "workspaces" / "compliant.json")
    for arguments, what in (
        (("check", sample, "--output", f"json={where}"), "report"),
        (("test", "--junit", where), "JUnit report"),
        (("bundle", "build", "--output", where), "archive"),
    ):
        ran = policyeng(*arguments, "--policy", "p", folder=tmp_path)

        assert (ran.returncode, ran.stderr.splitlines()[-1]) == (
            3,
            f"policyeng: {where}: cannot write the {what}: {why}",
        )
