"""Runs of the laws: the same for the same seed, stored failures for the next run, and undecided laws."""

from __future__ import annotations

import errno
import json
from dataclasses import replace
from pathlib import Path

import pytest

from policyeng.bundle import Bundle, Policy, load_bundle
from policyeng.errors import EngineError, InputError, UsageError
from policyeng.verify.example_documents import document_of, example_of, is_sayable, read, toml_of
from policyeng.verify.laws import LAWS, Law, laws_named
from policyeng.verify.laws.law import Trial, Violation
from policyeng.verify.runner import FailingExample, LawRun, as_text, run, store_failure
from tests.bundles import deny_when, rego, write

BROKEN = Path(__file__).parent / "broken"
TURNED = BROKEN / "monotone"


@pytest.fixture(scope="module")
def turned() -> Bundle:
    """A bundle that breaks law 14 alone, on the example 36 of the seed 7."""
    return load_bundle(TURNED)


@pytest.fixture
def honest(tmp_path: Path) -> Bundle:
    """A bundle with one policy that breaks no law."""
    text = rego("a", deny_when("input.resource.properties.publicNetworkAccess == `Enabled`"))
    return load_bundle(write(tmp_path / "honest", {"area/a/a.rego": text}))


def outcome_of(done: LawRun) -> object:
    """The outcome of a run, without its duration."""
    found = [
        (entry.law.name, entry.violation, entry.note, document_of(entry.example) if entry.example else None)
        for entry in done.found
    ]
    return done.tally.examples, done.tally.findings, done.tally.tried, done.tally.outcomes, found, done.exit_code


@pytest.mark.slow
def test_the_number_of_processes_changes_nothing(turned: Bundle) -> None:
    """Examples, counts, violations and their smallest snapshots are those of the seed."""
    one, three = (run(turned, laws_named(["total", "monotone"]), examples=200, seed=7, jobs=jobs) for jobs in (1, 3))

    assert outcome_of(one) == outcome_of(three)
    assert one.exit_code == 1


@pytest.mark.slow
def test_a_longer_run_begins_as_the_shorter_one(turned: Bundle) -> None:
    """Both meet the same first violation."""
    (first,) = run(turned, laws_named(["monotone"]), examples=200, seed=7).found
    number = int(first.chance.removeprefix("7/"))
    shorter, none = (
        run(turned, laws_named(["monotone"]), examples=most, seed=7).found for most in (number + 1, number)
    )

    assert [entry.chance for entry in shorter] == [first.chance]
    assert none == []


@pytest.mark.slow
def test_the_smallest_example_still_breaks_the_law_and_is_read_by_check(turned: Bundle) -> None:
    """One cluster is all that a comparison that is turned round needs."""
    (found,) = run(turned, laws_named(["monotone"]), examples=200, seed=7).found

    assert found.example is not None
    assert found.note == ""
    snapshot = read(found.example.document)
    assert snapshot is not None
    assert len(snapshot.resources) <= 2
    assert document_of(example_of(json.loads(json.dumps(document_of(found.example))))) == document_of(found.example)


@pytest.mark.slow
def test_a_failure_is_kept_tried_first_and_dropped_when_it_holds(
    turned: Bundle, honest: Bundle, tmp_path: Path
) -> None:
    """Without a new failure nothing is written; a kept one is found again without its example being drawn."""
    folder = tmp_path / "kept"
    laws = laws_named(["monotone"])

    assert run(honest, laws, examples=5, seed=7, database=folder).exit_code == 0
    assert not folder.exists()
    (first,) = run(turned, laws, examples=200, seed=7, database=folder).found
    again = run(turned, laws, examples=1, seed=8, database=folder)
    assert [(entry.again, entry.kept, entry.violation) for entry in again.found] == [
        (True, first.kept, first.violation)
    ]
    repaired = replace(honest, name=turned.name, policies=(_renamed(honest, turned),))
    done = run(repaired, laws, examples=1, seed=8, database=folder)
    assert (done.exit_code, done.dropped) == (0, [first.kept])
    assert list(folder.iterdir()) == []


def _renamed(bundle: Bundle, other: Bundle) -> Policy:
    """The policy of one bundle with the id of the other's."""
    (policy,), (named,) = bundle.policies, other.policies
    return replace(policy, header=policy.header.model_copy(update={"id": named.id}))


@pytest.mark.slow
def test_failures_of_other_bundles_and_laws_are_left_alone_and_reported(
    turned: Bundle, honest: Bundle, tmp_path: Path
) -> None:
    """Nothing is dropped that was not tried."""
    (first,) = run(turned, laws_named(["monotone"]), examples=200, seed=7, database=tmp_path / "kept").found

    other = run(honest, laws_named(["monotone"]), examples=1, seed=8, database=tmp_path / "kept")
    less = run(turned, laws_named(["total"]), examples=1, seed=8, database=tmp_path / "kept")

    assert other.left_alone == [(first.kept, f"the bundle is `{turned.name}`")]
    assert less.left_alone == [(first.kept, "the law `monotone` is not tested")]
    assert first.kept is not None
    assert first.kept.exists()


def test_a_violation_of_a_policy_that_keeps_state_is_made_small_and_fails_again_when_kept(tmp_path: Path) -> None:
    """It fails once in the life of its module, which is run again for each smaller example and the kept one."""
    bundle, laws = load_bundle(BROKEN / "repeatable"), laws_named(["repeatable", "order"])

    first = run(bundle, laws, examples=20, seed=7, jobs=1, database=tmp_path)
    again = run(bundle, laws, examples=1, seed=8, jobs=1, database=tmp_path)

    assert [entry.law.name for entry in first.found] == ["repeatable", "order"]
    for entry in first.found:
        assert entry.example is not None
        assert len(entry.example.document["resources"]) == 1
        assert entry.note.startswith("the policy keeps state between evaluations")
    assert [entry.law.name for entry in again.found if entry.again] == ["repeatable", "order"]
    assert again.dropped == []


def test_a_file_that_no_run_has_kept_is_refused(turned: Bundle, tmp_path: Path) -> None:
    """It is named, with what to do."""
    (tmp_path / "x.json").write_text("{}", encoding="utf-8")

    with pytest.raises(InputError, match=r"x\.json: not a failure that a run has stored; remove it"):
        run(turned, laws_named(["total"]), examples=1, seed=7, database=tmp_path)


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_database_that_cannot_be_used_is_refused_at_the_start(turned: Bundle, tmp_path: Path, place: str) -> None:
    """It costs no run, and states what else to do."""
    (tmp_path / "file").write_text("", encoding="utf-8")

    with pytest.raises(UsageError, match=r"file.*: failures cannot be stored there: .*; name another directory with"):
        run(turned, LAWS, examples=10**9, seed=7, database=tmp_path / place)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.slow
def test_what_cannot_be_kept_or_removed_is_reported_and_costs_no_report(
    turned: Bundle, honest: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk may fill up on the way; the violation is found all the same, and no half of a file is left."""
    folder, laws = tmp_path / "kept", laws_named(["monotone"])
    repaired = replace(honest, name=turned.name, policies=(_renamed(honest, turned),))

    def full(*_: object, **__: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", full)
        done = run(turned, laws, examples=200, seed=7, database=folder)
    assert (done.exit_code, [entry.kept for entry in done.found], list(folder.iterdir())) == (1, [None], [])
    assert "cannot store a failure: no space left on device; name another directory" in as_text(done)
    (found,) = done.found
    assert found.example is not None
    kept = store_failure(folder, turned.name, FailingExample("monotone", found.violation, found.example, found.chance))
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", full)
        again = run(repaired, laws, examples=1, seed=8, database=folder)
    assert (again.exit_code, again.dropped) == (0, [])
    assert again.unkept == [f"{kept}: no longer fails, but cannot be removed: no space left on device"]


def test_a_law_that_raises_is_undecided_with_the_number_of_the_example(honest: Bundle) -> None:
    """The others go on."""

    def raising(trial: Trial) -> Violation | None:
        raise ZeroDivisionError(trial.chance)

    done = run(honest, [*laws_named(["total"]), Law(99, "raising", "", "", raising)], examples=3, seed=7, jobs=1)

    assert done.exit_code == 2
    assert done.tally.tried["total"] == 3
    (broken,) = done.tally.broken.values()
    assert (broken.law, broken.chance, broken.reason) == ("raising", "7/0", "ZeroDivisionError: 7/0")


def test_a_bundle_without_policies_cannot_be_tried(honest: Bundle) -> None:
    """No law holds without a finding."""
    with pytest.raises(EngineError, match="no policy"):
        run(honest.only(()), LAWS, examples=1, seed=7)


def test_parameters_are_printed_as_a_configuration_file() -> None:
    """TOML expresses what JSON does, but for null."""
    import tomllib

    parameters = {"T-1": {"names": ["a\u007f", 'ü"\\'], "limits": {"x y": 1.5, "z": True}}, "T-2": {}}

    assert tomllib.loads(toml_of(parameters)) == {"parameters": parameters}
    assert is_sayable(parameters)
    assert not is_sayable({"T-1": {"x": None}})
