"""Every model and every report survives its round trip."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import orjson

from policyeng.bundle.cases import STATED
from policyeng.models import Evaluation, Exemption, JsonObject, Snapshot
from policyeng.report import FORMATS
from policyeng.sources import read_exemptions
from policyeng.verify.example_documents import document_of, example_of, read, text_of
from policyeng.verify.generators.estates import plain
from policyeng.verify.laws.law import Trial, Violation, find_first_difference
from tests.laws import exemptions
from tests.laws.reports_read import READERS, lines_of


def violated(trial: Trial) -> Violation | None:
    """The first thing that is another one after it was read back."""
    random = trial.random("round-trips")
    return (
        _of_evaluation(trial.evaluation)
        or _of_report(trial.evaluation, random)
        or _of_snapshot(trial.snapshot)
        or _of_example(trial)
        or _of_exemption(exemptions.drawn(random, trial.evaluation), random)
    )


def _of_evaluation(evaluation: Evaluation) -> Violation | None:
    message = "an evaluation is another one after it was written as JSON and read back"
    try:
        again = Evaluation.model_validate_json(evaluation.model_dump_json(by_alias=True))
    except ValueError as error:
        return Violation("an evaluation cannot be read back from its JSON", lines=(str(error),))
    if again == evaluation:
        return None
    found = find_first_difference(evaluation, again, lambda finding: finding)
    return replace(found, message=message) if found else Violation(message)


def _of_report(evaluation: Evaluation, random: Random) -> Violation | None:
    """Read one of the machine reports with a parser that knows nothing of it."""
    name = random.choice(sorted(READERS))
    try:
        returned = READERS[name](FORMATS[name](evaluation))
    except Exception as error:  # a parser's own error, of whatever class, is what is looked for
        lines = (f"format {name}: {type(error).__name__}: {error}",)
        return Violation("a report cannot be written, or not be read back", lines=lines)
    expected = lines_of(evaluation, name)
    differing = Counter(expected)
    differing.subtract(returned)
    for policy, resource in (pair for pair, number in differing.items() if number):
        return Violation("a report differs from the evaluation", policy, resource, (f"format {name}",))
    return None


def _of_snapshot(snapshot: Snapshot) -> Violation | None:
    """Write a snapshot as a native document and read it back; one that the reader refuses makes no round trip."""
    again = read(_native(snapshot))
    if again is None:
        return None
    first, second = _native(snapshot), _native(again)
    for name, value in first.items():
        if value != second[name]:
            return Violation("a snapshot is another one after it was written and read back", lines=(f"`{name}`",))
    return None


def _native(snapshot: Snapshot) -> JsonObject:
    stated = {name: [plain(entry) for entry in getattr(snapshot, name)] for name in STATED}
    taken_at = {"takenAt": snapshot.taken_at.isoformat()} if snapshot.taken_at else {}
    resources, incomplete = list(snapshot.resources), list(snapshot.incomplete)
    return {"scope": snapshot.scope, **taken_at, "resources": resources, **stated, "incomplete": incomplete}


def _of_example(trial: Trial) -> Violation | None:
    example = trial.example
    again = example_of(json.loads(text_of(document_of(example))))
    if again != example:
        return Violation("an example is another one after it was kept in a file and read back")
    return None


def _of_exemption(exemption: Exemption | None, random: Random) -> Violation | None:
    """Read an exemption from a file; what the reader refuses for a reason of its own makes no round trip."""
    if exemption is None:
        return None
    with TemporaryDirectory() as folder:  # one for the run would be left behind by processes
        file = Path(folder) / random.choice(("exemptions.json", "exemptions.yaml"))
        file.write_bytes(orjson.dumps({"exemptions": [plain(exemption)]}))
        exempted, problems = read_exemptions(file)
    if problems or exempted == (exemption,):
        return None
    return Violation("an exemption is another one after it was written and read back", exemption.policy)
