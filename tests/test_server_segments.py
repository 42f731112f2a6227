"""Files of lines: rotated by size, whole after a crash, one writer at a time, and a write is all or nothing."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from policyeng.errors import UsageError
from policyeng.server.decision_log import NAME, Segments
from tests.test_server_shared import ended, forked


def lines_in(folder: Path) -> list[str]:
    """The lines of all files, oldest first."""
    ended = sorted(folder.glob("decisions-*.jsonl"))
    return "".join(path.read_text(encoding="utf-8") for path in (*ended, folder / NAME)).splitlines()


def test_a_full_file_gets_its_name_and_the_oldest_goes(tmp_path: Path) -> None:
    """The newest are kept, in order."""
    segments = Segments(tmp_path, longest=30, keep=3)
    for number in range(12):
        segments.write(b"line %05d\n" % number)
    segments.close()

    assert len(list(tmp_path.iterdir())) == 3
    assert all(path.stat().st_size <= 33 for path in tmp_path.iterdir())
    assert lines_in(tmp_path) == [f"line {number:05}" for number in range(6, 12)]
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600


def test_a_line_that_is_longer_than_a_file_has_one_for_itself(tmp_path: Path) -> None:
    """It is not lost."""
    segments = Segments(tmp_path, longest=5)
    segments.write(b"a\n")
    segments.write(b"much longer\n")
    segments.write(b"b\n")

    assert lines_in(tmp_path) == ["a", "much longer", "b"]


@pytest.mark.parametrize("torn", [b"tor", b"x" * 200_000, b'{"whole": true}'])
@pytest.mark.parametrize("before", [b"", b"one\ntwo\n"])
def test_a_torn_line_is_removed_and_reported(tmp_path: Path, before: bytes, torn: bytes) -> None:
    """Earlier lines stay, and the next entry begins a line."""
    (tmp_path / NAME).write_bytes(before + torn)
    segments = Segments(tmp_path)
    segments.write(b"next\n")

    assert segments.torn == len(torn)
    assert (tmp_path / NAME).read_bytes() == before + b"next\n"


def test_a_write_that_fails_leaves_no_part(tmp_path: Path) -> None:
    """As on a disk that becomes full; the next one is tried again."""
    segments = Segments(tmp_path)
    segments.write(b"one\n")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (9, limits[1]))  # the first bytes go there, and then no more do
    try:
        with pytest.raises(OSError, match="File too large"):
            segments.write(b"two two two\n")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    segments.write(b"three\n")

    assert lines_in(tmp_path) == ["one", "three"]
    assert segments.torn == 0


def test_a_file_that_others_removed_is_created_again(tmp_path: Path) -> None:
    """As programs that rotate do."""
    segments = Segments(tmp_path)
    segments.write(b"one\n")
    (tmp_path / NAME).rename(tmp_path / "decisions-0.jsonl")
    segments.write(b"two\n")

    assert (tmp_path / NAME).read_bytes() == b"two\n"


def test_a_folder_has_one_writer(tmp_path: Path) -> None:
    """The folder has to be writable."""
    segments = Segments(tmp_path)
    with pytest.raises(UsageError, match="another process writes its decision log to this folder"):
        Segments(tmp_path)
    segments.close()
    Segments(tmp_path).close()
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match=r"cannot write the decision log \(file exists\)"):
        Segments(tmp_path / "file")


def test_a_worker_that_is_killed_while_it_writes_leaves_whole_lines(tmp_path: Path) -> None:
    """The next one to write removes a torn line, and knows how long it was."""
    segments = Segments(tmp_path)
    segments.write(b"before\n")

    def die_in_a_line() -> None:
        with segments._writing:
            os.write(segments._file, b"torn")
            os.kill(os.getpid(), signal.SIGKILL)

    assert ended(forked(die_in_a_line)) == [-signal.SIGKILL]
    segments.write(b"after\n")

    assert lines_in(tmp_path) == ["before", "after"]
    assert segments.torn == len("torn")


def test_workers_write_one_file_together(tmp_path: Path) -> None:
    """No line is lost or mixed with another when the file is rotated at the same time."""
    segments = Segments(tmp_path, longest=2000, keep=1000)

    def write(name: int) -> Callable[[], None]:
        def writing() -> None:
            for number in range(300):
                segments.write(b"%d %05d\n" % (name, number))

        return writing

    ended(*(forked(write(name)) for name in range(3)))

    assert sorted(lines_in(tmp_path)) == [f"{name} {number:05}" for name in range(3) for number in range(300)]
