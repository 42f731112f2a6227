"""Check, admission and audit agree, and every other path by which the same thing is judged."""

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
from tests.laws.asked import Answer, Asked
from tests.laws.processes import audited, can_audit, checked

_NAME = "paths"


def _evaluate(asked: Asked) -> Answer | None:
    """A snapshot that a program builds; of what a reader refuses, and of documents, it has no say.

    It says itself what is not known of its resources, in the words of the reader.
    """
    if asked.refused or asked.trial.bundle.wanted["documents"]:
        return None
    trial = asked.trial
    read = asked.inputs.snapshot
    built = trial.snapshot.model_copy(update={"covers": read.covers, "unreadable": read.unreadable})
    judged: Evaluation = policyeng.evaluate(trial.bundle, built, **asked.options)  # type: ignore[arg-type]  # as above
    answer = asked.placed(asked.answer(render(judged), judged.exit_code))
    return Answer(answer.findings, None, answer.exit_code)


def _load_snapshot(asked: Asked) -> Answer:
    """A file that a program reads whole or not at all."""
    try:
        snapshot = load_snapshot(asked.file, **asked.trial.bundle.wanted)
    except InputError:  # aloud, which is all that it says of what the others judge in part
        expected = asked.expected
        return Answer(expected.findings if asked.refused else {}, None, 2)
    judged: Evaluation = policyeng.evaluate(asked.trial.bundle, snapshot, **asked.options)  # type: ignore[arg-type]  # as above
    answer = asked.answer(render(judged), judged.exit_code)
    return Answer(answer.findings, None, answer.exit_code)


#: Every path by which an estate is judged, by the name that a violation gives it; None where it is not open.
PATHS: Mapping[str, Callable[[Asked], Answer | None]] = {
    "policyeng.evaluate": _evaluate,
    "policyeng.load_snapshot": _load_snapshot,
    "policyeng.admit": admitted,
    "policyeng check FILE": lambda asked: checked(asked, str(asked.file)),
    "policyeng check -": lambda asked: checked(asked, "-"),
    "policyeng check FILE --jobs 2": lambda asked: checked(asked, str(asked.file), "--jobs", "2"),
    "policyeng audit run": audited,
}


def violated(trial: Trial) -> Violation | None:
    """The first path that says something else."""
    naming = trial.grounds.once(_NAME, lambda: _naming(trial.grounds))
    with TemporaryDirectory() as folder:
        asked = _asked(trial, Path(folder).resolve(), naming)
        for name, path in PATHS.items():
            answer = path(asked)
            if answer is None:
                continue
            if found := _difference(name, asked.expected, answer):
                return found
            trial.grounds.remark(_NAME, f"examples judged alike by `{name}`", 1)
        # As it was read: then findings have places in the file, which a change can take from them.
        return unlike_the_whole(trial, _NAME, asked.inputs.snapshot)


def _asked(trial: Trial, folder: Path, naming: Sequence[str] | None) -> Asked:
    parameters = {
        policy: {name: value for name, value in own.items() if is_sayable(value)}
        for policy, own in trial.example.parameters.items()
    }
    # An empty one, too: it ends the search for the configuration in the directories above.
    (folder / "policyeng.toml").write_text(toml_of(parameters), encoding="utf-8")
    (folder / "snapshot.json").write_text(snapshot_text(trial.example), encoding="utf-8")
    return Asked(trial, folder, parameters, _exempted(trial, folder), naming)


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


def _difference(name: str, expected: Answer, answer: Answer) -> Violation | None:
    """What a path says otherwise, the first of it; None if nothing."""
    for pair in sorted({*expected.findings, *answer.findings}):
        here, there = expected.findings.get(pair), answer.findings.get(pair)
        if here != there:
            shown = here or there or {}
            lines = (
                f"read and judged here: {_line(here, there)}",
                f"by {name}: {_line(there, here)}",
                *_spoken(answer),
            )
            return Violation(f"`{name}` gives other findings", pair[0], str(shown.get("resource")), lines)
    if answer.problems is not None and answer.problems != expected.problems:
        lines = (f"read and judged here: {json.dumps(expected.problems)}", f"by {name}: {json.dumps(answer.problems)}")
        return Violation(f"`{name}` gives other problems", lines=lines)
    if answer.exit_code != expected.exit_code:
        lines = (f"read and judged here: {expected.exit_code}", f"by {name}: {answer.exit_code}")
        return Violation(f"`{name}` ends with another exit code", lines=lines)
    return None


def _line(finding: JsonObject | None, other: JsonObject | None) -> str:
    """A finding, or what of it is not as in the other."""
    if finding is None:
        return "no finding"
    return json.dumps({key: value for key, value in finding.items() if not other or value != other.get(key)})


def _spoken(answer: Answer) -> Sequence[str]:
    """Why there is no finding at all."""
    return () if answer.findings or not answer.problems else (f"it says: {answer.problems[0].get('message')}",)


def _naming(grounds: LawContext) -> Sequence[str] | None:
    """How a process is given the bundle; None, and said aloud, where it cannot be."""
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
    return "" if same and again.digest == bundle.digest else "the bundle is not what its directories hold"
