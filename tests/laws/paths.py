"""Check, admission and audit agree, and every other path by which the same thing is evaluated."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import policyeng
from policyeng.bundle import Bundle, load_bundle
from policyeng.errors import InputError, PolicyengError
from policyeng.facts.catalogue import built_in_root
from policyeng.models import Evaluation, Exemption, JsonObject, Outcome
from policyeng.report.json import render
from policyeng.sources import load_snapshot, read_exemptions
from policyeng.verify.example_documents import is_sayable, snapshot_text, toml_of
from policyeng.verify.laws.law import LawContext, Trial, Violation
from tests.laws.admitting import admitted, unlike_the_whole
from tests.laws.processes import audited, can_audit, checked
from tests.laws.queries import PathResult, Query

_NAME = "paths"


def _evaluate(query: Query) -> PathResult | None:
    """A snapshot that a program builds; what a reader refuses, and documents, are not part of it.

    It states itself what is not known of its resources, in the words of the reader.
    """
    if query.refused or query.trial.bundle.wanted["documents"]:
        return None
    trial = query.trial
    read = query.inputs.snapshot
    built = trial.snapshot.model_copy(update={"covers": read.covers, "unreadable": read.unreadable})
    evaluation: Evaluation = policyeng.evaluate(trial.bundle, built, **query.options)  # type: ignore[arg-type]  # as above
    result = query.placed(query.result(render(evaluation), evaluation.exit_code))
    return PathResult(result.findings, None, result.exit_code)


def _load_snapshot(query: Query) -> PathResult:
    """A file that a program reads whole or not at all."""
    try:
        snapshot = load_snapshot(query.file, **query.trial.bundle.wanted)
    except InputError:  # with a message, which is all of its result where the others evaluate a part
        expected = query.expected
        return PathResult(expected.findings if query.refused else {}, None, 2)
    evaluation: Evaluation = policyeng.evaluate(query.trial.bundle, snapshot, **query.options)  # type: ignore[arg-type]  # as above
    result = query.result(render(evaluation), evaluation.exit_code)
    return PathResult(result.findings, None, result.exit_code)


#: Every path by which an estate is evaluated, by the name that a violation gives it; None where it is not open.
PATHS: Mapping[str, Callable[[Query], PathResult | None]] = {
    "policyeng.evaluate": _evaluate,
    "policyeng.load_snapshot": _load_snapshot,
    "policyeng.admit": admitted,
    "policyeng check FILE": lambda query: checked(query, str(query.file)),
    "policyeng check -": lambda query: checked(query, "-"),
    "policyeng check FILE --jobs 2": lambda query: checked(query, str(query.file), "--jobs", "2"),
    "policyeng audit run": audited,
}


def violated(trial: Trial) -> Violation | None:
    """The first path with another result."""
    naming = trial.grounds.once(_NAME, lambda: _naming(trial.grounds))
    with TemporaryDirectory() as folder:
        query = _query(trial, Path(folder).resolve(), naming)
        for name, path in PATHS.items():
            result = path(query)
            if result is None:
                continue
            if found := _difference(name, query.expected, result):
                return found
            trial.grounds.remark(_NAME, f"examples evaluated alike by `{name}`", 1)
        # As it was read: then findings have places in the file, which a change can take from them.
        return unlike_the_whole(trial, _NAME, query.inputs.snapshot)


def _query(trial: Trial, folder: Path, naming: Sequence[str] | None) -> Query:
    parameters = {
        policy: {name: value for name, value in own.items() if is_sayable(value)}
        for policy, own in trial.example.parameters.items()
    }
    # An empty one, too: it ends the search for the configuration in the directories above.
    (folder / "policyeng.toml").write_text(toml_of(parameters), encoding="utf-8")
    (folder / "snapshot.json").write_text(snapshot_text(trial.example), encoding="utf-8")
    return Query(trial, folder, parameters, _exempted(trial, folder), naming)


def _exempted(trial: Trial, folder: Path) -> Sequence[Exemption]:
    """An exemption of a failure, now and then, as a file and as it is read; none where the reader would refuse it."""
    chance = trial.random(_NAME)
    failing = [finding for finding in trial.evaluation.findings if finding.outcome is Outcome.FAIL]
    if not failing or chance.random() < 0.3:
        return ()
    target, begins = chance.choice(failing), trial.example.as_of - timedelta(days=chance.choice((1, 300)))
    entry = {"id": "E-1", "policy": target.policy, "scope": target.resource, "category": "waiver", "reason": "agreed"}
    entry |= {"owner": "owner", "approvedBy": "approver"}
    entry |= {"createdAt": begins.isoformat(), "expiresAt": (begins + timedelta(days=200)).isoformat()}
    file = folder / "exemptions.json"
    file.write_text(json.dumps({"exemptions": [entry]}), encoding="utf-8")
    read = read_exemptions(file)
    return () if read.problems else read.exemptions


def _difference(name: str, expected: PathResult, result: PathResult) -> Violation | None:
    """The first difference of a path; None if there is none."""
    for pair in sorted({*expected.findings, *result.findings}):
        here, there = expected.findings.get(pair), result.findings.get(pair)
        if here != there:
            shown = here or there or {}
            lines = (
                f"read and evaluated here: {_line(here, there)}",
                f"by {name}: {_line(there, here)}",
                *_spoken(result),
            )
            return Violation(f"`{name}` gives other findings", pair[0], str(shown.get("resource")), lines)
    if result.problems is not None and result.problems != expected.problems:
        lines = (
            f"read and evaluated here: {json.dumps(expected.problems)}",
            f"by {name}: {json.dumps(result.problems)}",
        )
        return Violation(f"`{name}` gives other problems", lines=lines)
    if result.exit_code != expected.exit_code:
        lines = (f"read and evaluated here: {expected.exit_code}", f"by {name}: {result.exit_code}")
        return Violation(f"`{name}` ends with another exit code", lines=lines)
    return None


def _line(finding: JsonObject | None, other: JsonObject | None) -> str:
    """A finding, or what of it is not as in the other."""
    if finding is None:
        return "no finding"
    return json.dumps({key: value for key, value in finding.items() if not other or value != other.get(key)})


def _spoken(result: PathResult) -> Sequence[str]:
    """Why there is no finding at all."""
    return () if result.findings or not result.problems else (f"problem: {result.problems[0].get('message')}",)


def _naming(grounds: LawContext) -> Sequence[str] | None:
    """How a process is given the bundle; None, and reported, where it cannot be."""
    bundle = grounds.bundle
    roots = [str(root.resolve()) for root in bundle.roots if root.resolve() != built_in_root()]
    if reason := _lost(bundle, roots) if sys.executable else "no Python is known to start one with":
        grounds.remark(_NAME, f"`policyeng check` was not tried as a process: {reason}")
        return None
    if not can_audit():
        grounds.remark(_NAME, "`policyeng audit run` was not tried: its libraries are not installed")
    words = [word for root in roots for word in ("--policy", root)]
    words += [word for given in bundle.given for word in ("--data", given)]
    return [*words, *(word for policy in bundle.policies if bundle.idle for word in ("--select", policy.id))]


def _lost(bundle: Bundle, roots: Sequence[str]) -> str:
    """Why a bundle that is read again is not this one; empty when it is."""
    if any(origin.signature for origin in bundle.origins):
        return "its signature was verified, and the process would read it again without"
    try:
        again = load_bundle(*roots, data=bundle.given)
    except PolicyengError as error:
        return str(error)
    headers = {policy.id: policy.header for policy in again.policies}
    same = all(headers.get(policy.id) == policy.header for policy in bundle.policies)
    return "" if same and again.digest == bundle.digest else "the bundle is not that of its directories"
