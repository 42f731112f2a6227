"""Headers from the cache are those that YAML and pydantic gave, and every change is read again."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from policyeng.bundle import header_cache, load_bundle, loader
from policyeng.bundle.header_cache import Headers
from policyeng.errors import BundleError

TREE = {PurePosixPath("a/b/b.rego"): b"package a.b\n"}
FULL = """
title: A title
description: Text
related_resources: [https://example.com, {ref: https://example.org, description: More}]
custom:
  id: AML-TST-001
  severity: high
  judges: [workload, {type: a/b, where: {/kind: [X, true, 1]}}]
  inspects: [/properties/x, "workspace:/properties/y"]
  consults: [{through: [/properties/x, /y], reads: [/z, "workspace:/z"]}, {type: a/b, reads: [/z], within: resource}]
  when_absent: {/properties/x: fail, "workspace:/properties/y": unknown}
  remediation:
    text: Fix it
    patches:
      - patch: [{op: test, path: /kind, value: X}, {op: remove, path: /properties/x}]
        answers: [/properties/x]
        provided: [AML-TST-002]
      - {patch: [{op: add, path: /properties/y, value: 1}], of: a/c}
  controls: {mcsb-v1: [NS-1, NS-2]}
  parameters: {limit: {type: number, default: 1.5}}
  since: 0.1.0
  exemptable: false
"""
PLAIN = "title: A title\ncustom: {id: AML-TST-002, severity: low, judges: workload, remediation: Fix it}\n"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own for each test."""
    monkeypatch.setenv("POLICYENG_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def refuse(*_: object) -> None:
    """Takes the place of what may not be read again."""
    raise AssertionError("read anew")


def test_headers_come_back_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """In every field, its type and whether it was given; a library module has none again."""
    texts = [FULL, PLAIN, "title: A library\n"]
    first = Headers(TREE)
    read = [first.of_metadata(text, "place") for text in texts]
    first.keep()
    monkeypatch.setattr(header_cache, "bundle_yaml", refuse)

    again = [Headers(TREE).of_metadata(text, "place") for text in texts]

    assert again == read
    assert repr(again) == repr(read)
    assert read[2] is None
    for old, new in zip(read[:2], again[:2], strict=True):
        assert old is not None
        assert new is not None
        assert new.model_dump_json() == old.model_dump_json()


@pytest.mark.slow
def test_the_built_in_policies_come_back_as_they_were(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    """Those in Python too, where the bundle is not stored as a whole."""
    monkeypatch.setattr(loader, "state_of", lambda _: None)
    read = load_bundle()
    monkeypatch.setattr(header_cache, "bundle_yaml", refuse)
    monkeypatch.setattr(header_cache, "parse_header", refuse)
    again = load_bundle()

    assert [policy.header for policy in again.policies] == [policy.header for policy in read.policies]
    assert repr([policy.header for policy in again.policies]) == repr([policy.header for policy in read.policies])
    assert len(list(place.iterdir())) == 1


def test_another_text_is_read_anew() -> None:
    """The entry of the tree is there, and has another header."""
    first = Headers(TREE)
    first.of_metadata(PLAIN, "place")
    first.keep()

    header = Headers(TREE).of_metadata(PLAIN.replace("low", "critical"), "place")

    assert header is not None
    assert header.severity.value == "critical"


def test_what_is_wrong_is_refused_every_time() -> None:
    """A refusal is never stored, and the place is that of this run."""
    for place in ("first", "second"):
        headers = Headers(TREE)
        with pytest.raises(BundleError, match=place):
            headers.of_metadata("custom: {id: AML-TST-001, severity: awful, judges: workload}", place)
        headers.keep()


def test_a_header_that_cannot_be_stored_is_read_anew(place: Path) -> None:
    """A Python policy may give a value that only Python has, such as a tuple; an entry brings it back as it was."""
    module = b"""
from policyeng import policy
@policy(id="AML-TST-003", title="A title", severity="low", judges="workload",
        parameters={"names": {"type": "array", "default": ("a", "b")}})
def rule(given):
    return []
"""
    for _ in range(2):
        headers = Headers(TREE)
        header = headers.of_module(module, "place", is_twin=False).header
        assert header is not None
        assert header.parameters["names"]["default"] == ("a", "b")
        headers.keep()
    assert place.exists()


def test_other_code_reads_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an older version validated is worth nothing to a newer one."""
    first = Headers(TREE)
    first.of_metadata(PLAIN, "place")
    first.keep()
    monkeypatch.setattr("policyeng.cache.state_of_code", lambda *_: "another")
    monkeypatch.setattr(header_cache, "bundle_yaml", refuse)

    with pytest.raises(AssertionError, match="read anew"):
        Headers(TREE).of_metadata(PLAIN, "place")
