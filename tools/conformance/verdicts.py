"""What came of each case, on the engine that the product gives it to and on the interpreter alone."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from conformance.cases import Case, cases_of
from conformance.embedded import Embedded
from conformance.opa import server
from conformance.values import Answer, comparable, exact

Verdict = Literal["passed", "failed", "unsupported", "refused", "silent"]
_NO_FUNCTION = re.compile(r"`([\w.]+)` is (?:no function of|not available to)")


@dataclass(frozen=True)
class Outcome:
    """One case on one way of judging it.

    `silent` is a value where OPA has another or an error, or none where OPA has one; `failed` an error where OPA has a
    value; `unsupported` a builtin that is missing; `refused` a bundle that is not compiled. `reason` says why.
    """

    folder: str
    note: str
    way: Literal["product", "interpreter"]
    engine: str
    verdict: Verdict
    reason: str


def outcomes(cases: Path, opa: Path, engine: Path) -> Iterator[Outcome]:
    """Runs every case on OPA, as the product would and on the interpreter."""
    with server(opa) as reference, Embedded(engine) as embedded:
        for case in cases_of(cases):
            said = reference.answer(case)
            for way in ("product", "interpreter"):
                answer = embedded.answer(case, interpreter=way == "interpreter")
                verdict, reason = judged(case, said, answer)
                yield Outcome(case.folder, case.note, way, answer.engine, verdict, reason)


def judged(case: Case, reference: Answer, answer: Answer) -> tuple[Verdict, str]:
    """The verdict on an answer, and its reason.

    OPA must be in error where its own test expects that or where it says so with strict errors of builtins; else the
    values of its own test count, as they do where OPA's server does not take a case (modules that need each other).
    """
    error = reference.fault[1] if reference.fault is not None and reference.fault[0] == "error" else None
    if answer.fault is not None and answer.fault[0] == "refused":
        missing = _NO_FUNCTION.search(answer.fault[1])
        return ("unsupported", missing[1]) if missing else ("refused", one_line(answer.fault[1]))
    if case.expected is None or error is not None:
        if answer.fault is not None:
            return "passed", ""
        return "silent", f"{_text(answer)} where OPA says `{error or 'error'}`"
    if answer.fault is not None:
        return "failed", f"{answer.fault[0]}: {one_line(answer.fault[1])}"
    wanted = comparable(exact(json.dumps(case.expected)), unordered=case.unordered)
    if wanted == comparable(answer.rows, unordered=case.unordered):
        return "passed", ""
    return "silent", f"{_text(answer)} where OPA has {json.dumps(case.expected)}"


def _text(answer: Answer) -> str:
    return "undefined" if answer.rows is None else json.dumps(answer.rows, default=str)


def one_line(message: str) -> str:
    """A message of the engine without the source that regorus draws into it."""
    _, drawn, error = message.partition("error: ")
    place = re.search(r"--> (\S+)", message)
    text = f"{place[1]}: {error}" if drawn and place else message
    return " ".join(text.split())
