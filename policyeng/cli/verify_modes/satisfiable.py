"""`policyeng verify --satisfiable`: check that each workload class can pass all policies at once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from policyeng.cli.console import print_line
from policyeng.cli.files import FileWriter
from policyeng.cli.progress import show_progress
from policyeng.cli.verify_modes.classes import ClassOptions
from policyeng.cli.verify_modes.options import VerifyOptions
from policyeng.configuration import Settings
from policyeng.context import parameters_given
from policyeng.errors import UsageError

if TYPE_CHECKING:
    from policyeng.verify.satisfiability.result import SatisfiabilityResult


def verify_satisfiable(asked: VerifyOptions, settings: Settings, options: ClassOptions) -> int:
    """Analyze and print each class; return 0 if all are satisfiable, 1 if one is not, else 2.

    Raises:
        UsageError: a profile or a parameter is not valid, or an example snapshot cannot be written.
        BundleError: a class is not well formed, or its id is unknown.
        EngineError: the bundle does not compile.
    """
    from policyeng.verify.satisfiability import report
    from policyeng.verify.satisfiability.classes import classes_of
    from policyeng.verify.satisfiability.result import answer

    started, bundle = time.monotonic(), asked.bundle
    parameters = parameters_given(bundle, bundle, settings)
    subjects = classes_of(bundle, options.paths, options.chosen)
    if options.witness:
        _make(options.witness)
    now = datetime.now(UTC)
    answers: list[SatisfiabilityResult] = []
    with show_progress("searching for example snapshots", "classes", len(subjects)) as advance:
        for number, subject in enumerate(subjects, 1):
            answers.append(answer(subject, bundle, options.as_of or subject.as_of or now, parameters))
            advance(number)
    writer = FileWriter()
    written = _write_witnesses(answers, options.witness, writer) if options.witness else {}
    run = report.SatisfiabilityRun(bundle, answers, settings.profile, written, time.monotonic() - started, asked.naming)
    render = {"json": report.as_json, "junit": report.as_junit}.get(asked.format, report.as_text)
    print_line(render(run))
    writer.require_all()
    return run.exit_code


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        remedy = "use another directory for `--witness`"
        raise UsageError(
            f"cannot create the directory for example snapshots: {reason}", place=(str(folder),), remedy=remedy
        ) from error


def _write_witnesses(answers: Sequence[SatisfiabilityResult], folder: Path, writer: FileWriter) -> dict[str, Path]:
    """Write every example snapshot; return the files that could be written, by class."""
    files = {}
    for found in answers:
        if found.witness:
            path = folder / f"{found.subject.id}.json"
            text = orjson.dumps(found.witness.document, option=orjson.OPT_INDENT_2) + b"\n"
            if writer.write(path, text, "witness"):
                files[found.subject.id] = path
    return files
