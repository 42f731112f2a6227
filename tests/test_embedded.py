"""The embedded engine: a program from the cache evaluates as the compiled one, and is used only where it may be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from policyeng import evaluate
from policyeng.bundle import Bundle, load_bundle
from policyeng.bundle.cases import baselines_of, estate, read_cases
from policyeng.engines import embedded
from policyeng.errors import EngineError
from policyeng.models import Evaluation, Snapshot
from policyeng.rego import linking
from policyeng.sources import load_snapshot
from tests.bundles import deny_when, rego, write
from tests.conftest import ROOT
from tests.drawn import AS_OF

BUNDLE = load_bundle()
SAMPLES = sorted((ROOT / "samples" / "workspaces").iterdir())
#: What stored code may lose.
LITERALS = """deny contains {"msg": "numbers", "actual": [1.0, 100000000000000000000000000001, 0.1234567890123456789]}
deny contains {"msg": "others", "actual": ["\\u0000\\ud83d\\ude00", {"b": {"a": []}}, null, true]}
deny contains {"msg": "sets", "actual": {3, 1.0, 1, "x", [true], {"a": {1}}}}
deny contains {"msg": "keys", "actual": {1: 2, true: 3, [4]: 5}}
deny contains {"msg": "patterns", "actual": input.resource.name} if regex.match(`^w[0-9]+$`, input.resource.name)"""


@pytest.fixture(autouse=True)
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache of its own for each test, and no program of an earlier one in memory."""
    place = tmp_path_factory.mktemp("cache")
    place.chmod(0o700)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POLICYENG_CACHE_DIR", str(place))
        embedded._program.cache_clear()
        yield place
    embedded._program.cache_clear()


def evaluated(snapshot: Snapshot, bundle: Bundle = BUNDLE) -> Evaluation:
    """An evaluation by a program that is not in memory."""
    embedded._program.cache_clear()
    return evaluate(bundle, snapshot, as_of=AS_OF)


def evaluated_as_stored(snapshot: Snapshot, bundle: Bundle = BUNDLE) -> Evaluation:
    """The same without compiling; an AssertionError when no stored program fits."""

    def link(*_: object, **__: object) -> None:
        raise AssertionError("nothing is compiled here")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linking, "link", link)
        return evaluated(snapshot, bundle)


@pytest.mark.slow
def test_a_stored_program_evaluates_as_the_compiled_one() -> None:
    """On samples and a failing case of each policy, with all policies: the same findings, byte for byte."""
    snapshots = [load_snapshot(path) for path in SAMPLES]
    for file in (read_cases(policy) for policy in BUNDLE.policies):
        assert file is not None
        name, case = next((name, case) for outcome, name, case in file.named() if outcome == "fail")
        snapshots.append(estate(baselines_of(BUNDLE), case, name))
    embedded._program.cache_clear()
    compiled = [evaluate(BUNDLE, snapshot, as_of=AS_OF) for snapshot in snapshots]
    stored = [evaluated_as_stored(snapshots[0])]
    stored += [evaluate(BUNDLE, snapshot, as_of=AS_OF) for snapshot in snapshots[1:]]

    assert [one.model_dump_json() for one in stored] == [one.model_dump_json() for one in compiled]


def test_values_that_are_hard_to_store_are_evaluated_alike(tmp_path: Path) -> None:
    """Numbers of every kind, sets, keys of every type, and regular expressions."""
    bundle = load_bundle(write(tmp_path, {"area/a/a.rego": rego("a", LITERALS)}))
    snapshot = load_snapshot(SAMPLES[0])
    compiled = evaluated(snapshot, bundle)

    assert compiled.findings
    assert evaluated_as_stored(snapshot, bundle).model_dump_json() == compiled.model_dump_json()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """A policy that fails for every workspace, which is compiled soon; it was read with another cache."""
    return load_bundle(write(tmp_path_factory.mktemp("small"), {"area/a/a.rego": rego("a", deny_when("true"))}))


def test_whatever_the_program_follows_from_misses(small: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another text, another path, other data, another compiler: each is compiled again."""
    snapshot = load_snapshot(SAMPLES[0])
    evaluated(snapshot, small)
    evaluated_as_stored(snapshot, small)
    [(path, source)] = [(path, source) for path, source in small.modules if path.endswith("a/a.rego")]
    rest = tuple((other, text) for other, text in small.modules if other != path)
    others = [
        replace(small, modules=((path, f"{source}\n"), *rest)),
        replace(small, modules=((f"x{path}", source), *rest)),
        replace(small, data={**small.data, "more": 1}),
    ]
    for other in others:
        with pytest.raises(AssertionError, match="nothing is compiled here"):
            evaluated_as_stored(snapshot, replace(other, digest="another"))
    monkeypatch.setattr("policyeng.cache.state_of_code", lambda *_: "another")
    with pytest.raises(AssertionError, match="nothing is compiled here"):
        evaluated_as_stored(snapshot, small)


def test_an_edited_policy_is_seen_at_once(tmp_path: Path) -> None:
    """The files are read at every start; the cache never hides a change of theirs."""
    write(tmp_path / "policies", {"area/a/a.rego": rego("a", deny_when("false"))})
    edited = tmp_path / "policies" / "area" / "a" / "a.rego"
    snapshot = load_snapshot(SAMPLES[0])
    before = evaluated(snapshot, load_bundle(tmp_path / "policies"))
    evaluated(snapshot, load_bundle(tmp_path / "policies"))
    edited.write_text(rego("a", deny_when("true")))

    after = evaluated(snapshot, load_bundle(tmp_path / "policies"))

    assert after.bundle.digest != before.bundle.digest
    assert after.summary.fail > before.summary.fail


@pytest.mark.parametrize("harm", [b"", b"policyeng cache 1\n", None])
def test_a_harmed_entry_is_compiled_anew_and_replaced(place: Path, small: Bundle, harm: bytes | None) -> None:
    """And the findings are those of the policies."""
    snapshot = load_snapshot(SAMPLES[0])
    first = evaluated(snapshot, small)
    assert first.summary.fail
    (entry,) = place.iterdir()
    good = entry.read_bytes()
    entry.write_bytes(good[:-1] + bytes([good[-1] ^ 1]) if harm is None else harm)

    assert evaluated(snapshot, small) == first
    assert entry.read_bytes().startswith(b"policyeng cache 1\n")
    assert evaluated_as_stored(snapshot, small) == first


@pytest.mark.parametrize("stored", [b"", b"no program", b"\xe9\x01\x00\x00\x00"])
def test_a_whole_entry_that_contains_no_program_is_compiled_anew(place: Path, small: Bundle, stored: bytes) -> None:
    """Such as one of another form, whose digest is right."""
    from policyeng import cache

    snapshot = load_snapshot(SAMPLES[0])
    first = evaluated(snapshot, small)
    (entry,) = place.iterdir()
    cache.store(entry.stem, [stored])

    assert evaluated(snapshot, small) == first
    assert evaluated_as_stored(snapshot, small) == first


def test_a_policy_that_does_not_compile_is_named(tmp_path: Path) -> None:
    """With the line, a caret and a hint."""
    bundle = load_bundle(write(tmp_path, {"area/a/a.rego": rego("a", deny_when("startwith(input.resource.name, 1)"))}))
    with pytest.raises(EngineError) as raised:
        evaluated(load_snapshot(SAMPLES[0]), bundle)

    assert "undefined function startwith" in raised.value.message
    assert "did you mean startswith?" in raised.value.message


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("deny contains 7", "is not a set or list of objects or strings"),
        ('deny := {"msg": "m"}', "is not a set or list of objects or strings"),
        ('deny contains {"path": "/a"}', "an element of `deny` is not an object with a string `msg`"),
        ('deny contains {"msg": "m", "more": 1}', "an element of `deny` has the unknown member `more`"),
        ('applies := "yes"\ndeny contains {"msg": "m"}', "applies is not a boolean"),
        ('deny contains {"msg": 1 / (count("a") - 1)}', ": eval_builtin_error: div: divide by zero: "),
        ('q := 1\nq := count("ab")\ndeny contains {"msg": "m"} if q', ": eval_conflict_error: "),
        ("deny contains {} if count(numbers.range(1, 1000000000)) > 0", ": eval_budget_error: "),
    ],
)
def test_a_policy_that_fails_is_an_error_of_its_pair(tmp_path: Path, body: str, reason: str) -> None:
    """And the findings of the others stay."""
    files = {"area/a/a.rego": rego("a", body), "area/b/b.rego": rego("b", deny_when("true"), identity="T-B-1")}
    found = evaluated(load_snapshot(SAMPLES[0]), load_bundle(write(tmp_path, files))).findings

    errors = [finding for finding in found if finding.policy == "T-A-1"]
    assert errors
    assert all(finding.outcome == "error" and reason in str(finding) for finding in errors)
    assert all(finding.outcome == "fail" for finding in found if finding.policy == "T-B-1")
