"""The cache: what it gives back is what this user put there, or nothing, and it never prevents a run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from policyeng import cache

KEY = cache.key_of("test")
PARTS = [b"", b"program", bytes(range(256)) * 40]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own for each test; not created yet."""
    monkeypatch.setenv("POLICYENG_CACHE_DIR", str(tmp_path / "a" / "cache"))
    return tmp_path / "a" / "cache"


def entry_in(place: Path) -> Path:
    """The one entry, after storing it."""
    cache.store(KEY, PARTS)
    (entry,) = place.iterdir()
    return entry


def test_what_was_stored_is_loaded(place: Path) -> None:
    """Parts come back one by one, empty ones too; no one else may look at them."""
    assert cache.load(KEY) is None

    entry = entry_in(place)

    assert cache.load(KEY) == PARTS
    assert cache.load(cache.key_of("other")) is None
    assert place.stat().st_mode & 0o777 == 0o700
    assert entry.stat().st_mode & 0o777 == 0o600


def test_keys_keep_their_parts_apart() -> None:
    """No two lists of parts share a key because their texts join to the same."""
    keys = [cache.key_of(*parts) for parts in (("ab", "c"), ("a", "bc"), ("abc",), ("", "abc"), ("abc", ""), ("1:a",))]

    assert len(set(keys)) == len(keys)
    assert cache.key_of("\ud800") != cache.key_of("?")


@pytest.mark.parametrize("length", [0, 1, 17, 18, 49, 50, 51, 57, 58, 200, -9, -1])
def test_a_truncated_entry_is_ignored_and_replaced(place: Path, length: int) -> None:
    """Wherever it ends."""
    entry = entry_in(place)
    entry.write_bytes(entry.read_bytes()[:length])

    assert cache.load(KEY) is None
    assert entry_in(place) == entry
    assert cache.load(KEY) == PARTS


def test_a_changed_entry_is_ignored(place: Path) -> None:
    """Each byte counts, of the head and of the content; and so does what is appended."""
    entry = entry_in(place)
    whole = entry.read_bytes()
    for position in [*range(80), len(whole) // 2, len(whole) - 1]:
        changed = bytearray(whole)
        changed[position] ^= 1
        entry.write_bytes(changed)
        assert cache.load(KEY) is None, position
    entry.write_bytes(whole + b"\0")
    assert cache.load(KEY) is None
    entry.write_bytes(whole)
    assert cache.load(KEY) == PARTS


def test_an_entry_under_another_name_is_ignored(place: Path) -> None:
    """A good entry of one bundle, laid in the place of another's."""
    entry = entry_in(place)
    other = cache.key_of("other")
    entry.rename(place / f"{other}{entry.suffix}")

    assert cache.load(other) is None


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_an_entry_that_others_may_write_is_ignored(place: Path, mode: int) -> None:
    """Whatever its content."""
    entry_in(place).chmod(mode)

    assert cache.load(KEY) is None


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777, 0o1777])
def test_a_directory_that_others_may_write_is_neither_read_nor_filled(place: Path, mode: int) -> None:
    """Others could lay their own entries there."""
    entry = entry_in(place)
    place.chmod(mode)

    assert cache.load(KEY) is None
    entry.unlink()
    cache.store(KEY, PARTS)
    assert list(place.iterdir()) == []


def test_what_belongs_to_another_user_is_ignored(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files stay as they are, and we become somebody else."""
    entry = entry_in(place)
    monkeypatch.setattr(os, "geteuid", lambda: entry.stat().st_uid + 1)

    assert cache.load(KEY) is None
    cache.store(cache.key_of("mine"), PARTS)
    assert list(place.iterdir()) == [entry]


def test_a_link_and_a_pipe_are_ignored(place: Path, tmp_path: Path) -> None:
    """In the place of an entry; the pipe has no writer and must not make us wait."""
    entry = entry_in(place)
    entry.rename(tmp_path / "elsewhere")
    entry.symlink_to(tmp_path / "elsewhere")
    assert cache.load(KEY) is None

    entry.unlink()
    os.mkfifo(entry, 0o600)
    assert cache.load(KEY) is None


def test_a_linked_directory_is_ignored(place: Path, tmp_path: Path) -> None:
    """Whoever made the link chose what is in it."""
    entry_in(place)
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")

    assert cache.load(KEY) is None


def test_a_place_that_cannot_be_written_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file where the directory should be, a directory without permission, and one that is on no disk."""
    (tmp_path / "file").write_text("")
    (tmp_path / "closed").mkdir(mode=0o500)
    for name in (str(tmp_path / "file"), str(tmp_path / "file" / "below"), "/proc/policyeng", str(tmp_path / "closed")):
        monkeypatch.setenv("POLICYENG_CACHE_DIR", name)
        cache.store(KEY, PARTS)
        assert cache.load(KEY) in (None, PARTS)  # root may write where others may not


def test_a_disk_that_is_full_leaves_nothing_behind(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half an entry is none."""
    place.mkdir(parents=True, mode=0o700)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    cache.store(KEY, PARTS)

    assert list(place.iterdir()) == []


def test_the_oldest_entries_go_and_so_does_litter(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounded in number and in bytes; what was just stored stays."""
    monkeypatch.setattr(cache, "MOST_ENTRIES", 3)
    keys = [cache.key_of(str(number)) for number in range(5)]
    for age, key in enumerate(keys):
        cache.store(key, [b"x"])
        os.utime(place / f"{key}.entry", (1000 + age, 1000 + age))
    (place / ".half-written").write_bytes(b"x")
    os.utime(place / ".half-written", (1000, 1000))
    (place / "somebody's").write_bytes(b"x")
    cache.store(KEY, PARTS)

    kept = {path.name for path in place.iterdir()}
    assert kept == {f"{key}.entry" for key in (*keys[-2:], KEY)} | {"somebody's"}
    monkeypatch.setattr(cache, "MOST_BYTES", 1)
    cache.store(keys[0], [b"x"])
    assert [path.name for path in place.glob("*.entry")] == [f"{keys[0]}.entry"]


def test_it_can_be_switched_off(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a block, and for a process."""
    entry = entry_in(place)
    with cache.switched_off():
        assert cache.load(KEY) is None
        with cache.switched_off(False):
            assert cache.directory() is None
    assert cache.load(KEY) == PARTS
    for text, off in (("1", True), ("yes", True), ("", False), ("0", False), ("false", False)):
        monkeypatch.setenv("POLICYENG_NO_CACHE", text)
        assert (cache.load(KEY) is None) is off
    assert entry.exists()


def test_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Our variable, then the desktop's, then the home; a relative base is no base (XDG specification)."""
    monkeypatch.delenv("POLICYENG_CACHE_DIR")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/xdg")
    assert cache.directory() == Path("/var/xdg/policyeng")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache.directory() == tmp_path / ".cache" / "policyeng"


def test_processes_that_store_at_once_leave_a_good_entry(place: Path) -> None:
    """Readers see none or all of it, never a part."""
    script = (
        "import sys\nfrom policyeng import cache\nparts = [bytes([int(sys.argv[1])]) * 100_000]\n"
        "for _ in range(60):\n    cache.store('k', parts)\n    found = cache.load('k')\n"
        "    assert found is not None and len(set(found[0])) == 1 and len(found[0]) == 100_000\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", script, str(number)]) for number in range(3)]

    assert [writer.wait(timeout=120) for writer in writers] == [0, 0, 0]
    assert [path.name for path in place.iterdir()] == ["k.entry"]
