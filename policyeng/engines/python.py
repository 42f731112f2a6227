"""Judge Python policies: call the function, keep what it yields, turn whatever it raises into an error."""

from __future__ import annotations

import orjson

from policyeng.bundle import PolicyInput
from policyeng.bundle.declaration import Functions
from policyeng.bundle.python_output import printing_to_standard_error
from policyeng.engines.watchdog import DeadlineExceededError, within_deadline
from policyeng.engines.work import SWITCHED_OFF, Judgement, Pair, Work, count_overrun, is_switched_off
from policyeng.models import Denial, Unknown

#: How many denials and unknowns a policy may yield for one resource, so that an endless generator ends.
MOST_YIELDED = 10_000


def judge_pair(work: Work, pair: Pair) -> Judgement:
    """One judgement by the Python form of a policy, be it in force or the twin of a Rego policy.

    Python policies are trusted code of the bundle: they run in this process, within a deadline but without a
    memory limit.

    Raises:
        BundleError: the module of the policy cannot be run.
    """
    policy = work.bundle.policies[pair.policy]
    if policy.python is None:
        return Judgement(error="the policy has no Python form")
    if is_switched_off(work.bundle, policy):
        return SWITCHED_OFF
    given = PolicyInput(
        resource=work.subjects[pair.subject],
        workspace=work.subjects[pair.workspace] if pair.workspace >= 0 else None,
        snapshot=work.snapshot,
        parameters=work.parameters[pair.policy],
        as_of=work.as_of,
        facts=work.bundle.facts,
    )
    functions = policy.python.functions
    space = getattr(functions[0], "__globals__", {})
    try:
        with printing_to_standard_error:
            return within_deadline(space, _outcome, functions, given)
    except DeadlineExceededError as error:
        count_overrun(work.bundle, policy)
        return Judgement(error=f"limit: {error}")


def _outcome(form: Functions, given: PolicyInput) -> Judgement:
    try:
        return _called(form, given)
    except (Exception, SystemExit, GeneratorExit) as error:  # all that a policy can raise is an error finding
        return Judgement(error=_wording(error))


def _wording(error: BaseException) -> str:
    """What an error says, as far as it can say it and a report can show it."""
    try:
        text = str(error)
    except Exception:
        text = "it cannot be put into words"
    return f"{type(error).__name__}: {text}".encode("utf-8", "backslashreplace").decode()


def _called(form: Functions, given: PolicyInput) -> Judgement:
    judge, decide = form
    if decide is not None:
        applies = decide(given)
        if not isinstance(applies, bool):
            return Judgement(error=f"`applies` gave {type(applies).__name__}, not a bool")
        if not applies:
            return Judgement(applies=False)
    denials: list[Denial] = []
    unknowns: list[Unknown] = []
    for said in judge(given):
        if len(denials) + len(unknowns) == MOST_YIELDED:
            return Judgement(error=f"the policy yielded more than {MOST_YIELDED} denials and unknowns")
        if isinstance(said, Denial):
            # What cannot be reported is an error; what can be is plain, without the views of the input.
            _, _, actual, expected = orjson.loads(orjson.dumps((said.msg, said.path, said.actual, said.expected)))
            denials.append(said.model_copy(update={"actual": actual, "expected": expected}))
        elif isinstance(said, Unknown):
            orjson.dumps((said.msg, said.path))
            unknowns.append(said)
        else:
            return Judgement(error=f"the policy yielded {type(said).__name__}, not Denial or Unknown")
    return Judgement(denials=tuple(denials), unknowns=tuple(unknowns))
