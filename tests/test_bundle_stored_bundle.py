"""The built-in bundle from the cache is the one that its files give, and every change of theirs is seen."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from policyeng.bundle import Bundle, analysis, assembling, files, load_bundle, loader, rego_trees
from policyeng.bundle.policy_selection import selected
from tests.bundles import deny_when, rego, write

PYTHON = """
from policyeng import policy
@policy(id="T-A-2", title="A title", severity="low", judges="workload", remediation="Correct it", source="https://x.y")
def rule(given):
    return []
"""
POLICIES = {
    "area/a/a.rego": rego("a", deny_when("input.snapshot.metrics")),
    "area/b/b.rego": rego("b", deny_when("false"), identity="T-A-3"),
    "area/c/c.py": PYTHON,
    "facts/x/data.json": '{"facts": {"x": 1}}',
}


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache, and built-in policies whose files count as settled at once."""
    monkeypatch.setenv("POLICYENG_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(loader, "_SETTLED", 0)
    for module in (files, loader):
        monkeypatch.setattr(module, "built_in_root", lambda: tmp_path / "policies")
    return write(tmp_path / "policies", POLICIES)


def refuse(*_: object) -> None:
    """Take the place of what may not be called."""
    raise AssertionError("read anew")


def test_it_comes_back_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """With all that is worked out of it, for a selection too, whose modules are not parsed again."""
    read = load_bundle()
    monkeypatch.setattr(assembling, "bundle_of", refuse)
    monkeypatch.setattr(rego_trees, "tree_of", refuse)
    monkeypatch.setattr(analysis, "_kept", {})
    stored = load_bundle()

    assert stored == read
    assert stored is not read
    for name in ("reaches", "spellings", "places", "clocked", "data_bytes", "queried_types"):
        assert getattr(stored, name) == getattr(read, name)
    assert selected(stored, ["T-A-1"]).reaches == read.reaches[:1]
    python = stored.policies[1].python
    assert python is not None
    assert list(python.functions.evaluate(None)) == []  # type: ignore[arg-type]  # it reads nothing


def same_size_and_time(root: Path) -> None:
    """Change a file so that only its time of change shows it."""
    file = root / "area" / "a" / "a.rego"
    status = file.stat()
    file.write_text(file.read_text().replace("snapshot.metrics", "snapshot.metricz"))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize(
    "change",
    [
        same_size_and_time,
        lambda root: write(root, {"area/d/d.rego": rego("d", deny_when("true"), identity="T-A-4")}),
        lambda root: (root / "area" / "b" / "b.rego").unlink(),
        lambda root: write(root, {"facts/x/data.json": '{"facts": {"x": 2}}'}),
        lambda root: write(root, {"area/c/c.py": PYTHON.replace("low", "medium")}),
    ],
)
def test_a_change_is_seen(change: Callable[[Path], object], root: Path) -> None:
    """Of any file that counts."""
    before = load_bundle()
    assert load_bundle() == before
    change(root)

    assert load_bundle().digest != before.digest


def test_new_cases_are_seen(root: Path) -> None:
    """They are no part of the digest."""
    assert load_bundle().policies[0].cases is None
    write(root, {"area/a/cases.yaml": "cases: []\n"})
    assert load_bundle().policies[0].cases == root / "area" / "a" / "cases.yaml"


def unsettled(monkeypatch: pytest.MonkeyPatch, _: Path) -> None:
    """A file that changed just now may change again within the same tick of the clock."""
    monkeypatch.setattr(loader, "_SETTLED", 60 * 10**9)


def linked(_: pytest.MonkeyPatch, root: Path) -> None:
    """What a link leads to may change without it."""
    (root / "area" / "e.rego").symlink_to(root / "area" / "a" / "a_test.rego")


def without_cache(monkeypatch: pytest.MonkeyPatch, _: Path) -> None:
    """Nothing is stored."""
    monkeypatch.setenv("POLICYENG_NO_CACHE", "1")


@pytest.mark.parametrize("prepare", [unsettled, linked, without_cache])
def test_what_may_change_unseen_is_read_every_time(
    prepare: Callable[[pytest.MonkeyPatch, Path], None], monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    """Of these nothing comes from the cache."""
    prepare(monkeypatch, root)
    made: list[Bundle] = []
    read = assembling.bundle_of

    def noted(opened: list[files.BundleOrigin], given: tuple[str, ...]) -> Bundle:
        made.append(read(opened, given))
        return made[-1]

    monkeypatch.setattr(assembling, "bundle_of", noted)
    assert load_bundle() == load_bundle()
    assert len(made) == 2
