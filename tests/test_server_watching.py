"""Files are read again when they change, and a bad reading keeps the last good one."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from policyeng.errors import InputError
from policyeng.server.file_watcher import Watched, fingerprint
from tests.servers import look


def watched(folder: Path) -> Watched[str]:
    """The text of a file, which is refused when it is `bad`."""

    def load() -> str:
        text = "".join(path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.txt")))
        if "bad" in text:
            raise InputError("it is bad", place=("a.txt",))
        return text

    return Watched("text", load, (folder,), seconds=0.01)


def test_a_change_is_read_and_a_bad_one_leaves_what_was_there(tmp_path: Path) -> None:
    """The fault states its start, and ends with the next good one."""
    file = tmp_path / "a.txt"
    file.write_text("one", encoding="utf-8")
    text = watched(tmp_path)
    file.write_text("two!", encoding="utf-8")
    look(text)
    assert text.current == "two!"
    assert text.fault is None
    file.write_text("bad", encoding="utf-8")
    look(text)
    assert text.current == "two!"
    assert text.fault is not None
    assert text.fault.message == "a.txt: it is bad"
    since = text.fault.since
    text.reload()
    assert text.fault.since == since
    (tmp_path / "b.txt").write_text("more", encoding="utf-8")
    file.write_text("three", encoding="utf-8")
    look(text)
    assert (text.current, text.fault) == ("threemore", None)


def test_nothing_is_read_again_that_did_not_change(tmp_path: Path) -> None:
    """Looking costs no reading."""
    read: list[int] = []
    (tmp_path / "a").write_text("x", encoding="utf-8")
    text = Watched("text", lambda: read.append(1), (tmp_path,))
    look(text)
    look(text)

    assert read == [1]


def test_a_bad_first_reading_is_an_error(tmp_path: Path) -> None:
    """There is nothing good to keep."""
    (tmp_path / "a.txt").write_text("bad", encoding="utf-8")
    with pytest.raises(InputError):
        watched(tmp_path)


def test_links_that_are_turned_count_as_a_change(tmp_path: Path) -> None:
    """As Kubernetes turns those of a volume to a new version, with the same names, sizes and times."""
    for version in ("1", "2"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "a.txt").write_text(version, encoding="utf-8")
        os.utime(tmp_path / version / "a.txt", (1, 1))
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    (mounted / "..data").symlink_to(tmp_path / "1")
    (mounted / "a.txt").symlink_to("..data/a.txt")
    before = fingerprint((mounted,))
    (mounted / "turned").symlink_to(tmp_path / "2")
    (mounted / "turned").rename(mounted / "..data")

    assert fingerprint((mounted,)) != before
    (mounted / "folder").symlink_to("..data")
    folders = fingerprint((mounted,))
    (mounted / "a.txt").unlink()
    only = fingerprint((mounted,))
    (mounted / "turned").symlink_to(tmp_path / "1")
    (mounted / "turned").rename(mounted / "..data")
    assert len({folders, only, fingerprint((mounted,))}) == 3
    assert fingerprint((mounted / "a.txt",)) != fingerprint((tmp_path / "1" / "a.txt",))


def test_files_that_change_while_they_are_read_are_not_taken(tmp_path: Path) -> None:
    """It may be half of the one and half of the other."""
    file = tmp_path / "a.txt"
    file.write_text("one", encoding="utf-8")
    meanwhile = [""]

    def load() -> str:
        text = file.read_text(encoding="utf-8")
        if meanwhile[0]:
            file.write_text(meanwhile.pop(), encoding="utf-8")
            meanwhile.append("")
        return text

    text = Watched("text", load, (tmp_path,))
    file.write_text("another", encoding="utf-8")
    meanwhile[0] = "a third one"
    look(text)
    assert text.current == "one"
    assert text.fault is not None
    assert "the files changed while they were read" in text.fault.message
    look(text)
    assert (text.current, text.failures) == ("a third one", 1)


def test_a_watch_waits_until_who_writes_has_ended(tmp_path: Path) -> None:
    """A file that changes between two looks is looked at again before it is read."""
    file = tmp_path / "a.txt"
    file.write_text("", encoding="utf-8")
    read: list[int] = []

    def load() -> str:
        text = file.read_text(encoding="utf-8")
        read.append(len(text))
        return text

    text = Watched("text", load, (file,), seconds=0.2)
    text.start()
    try:
        for _ in range(200):
            with file.open("a", encoding="utf-8") as writing:
                writing.write("x")
            time.sleep(0.004)
        ends = time.monotonic() + 60
        while len(text.current) < 200 and time.monotonic() < ends:
            time.sleep(0.01)
    finally:
        text.stop()
    assert read == [0, 200]


def test_a_watch_reads_on_request_and_notifies_afterwards(tmp_path: Path) -> None:
    """Though nothing changed, and at once."""
    heard = threading.Event()
    text = Watched("text", lambda: object(), (tmp_path,), seconds=60)
    before, text.then = text.current, heard.set
    text.start()
    try:
        text.request_reload()
        assert heard.wait(60)
    finally:
        text.stop()
    assert text.current is not before


def test_a_watch_sees_changes_by_itself(tmp_path: Path) -> None:
    """Until it is stopped."""
    file = tmp_path / "a.txt"
    file.write_text("one", encoding="utf-8")
    text = watched(tmp_path)
    text.start()
    try:
        file.write_text("another", encoding="utf-8")
        ends = time.monotonic() + 60
        while text.current != "another" and time.monotonic() < ends:
            time.sleep(0.01)
    finally:
        text.stop()
    assert text.current == "another"
    file.write_text("a third", encoding="utf-8")
    assert text.current == "another"
