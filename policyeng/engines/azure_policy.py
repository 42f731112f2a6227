"""Evaluate definitions of Azure Policy; `python` calls this for each pair, within its limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from policyeng.azure_policy.expressions import RefusedError
from policyeng.bundle import PolicyInput
from policyeng.engines.recording import plain
from policyeng.engines.request import PASSES, SKIPPED, Judgement
from policyeng.models import Denial
from policyeng.rego.markers import Cause, Undecided

if TYPE_CHECKING:
    from policyeng.azure_policy.effects import CompiledPolicy


def evaluate_definition(policy: CompiledPolicy, given: PolicyInput) -> tuple[Judgement, tuple[Cause, ...]]:
    """Return the outcome of a definition, and what is not known if that decides."""
    try:
        decision = policy.decide(given)
    except Undecided as undecided:
        return PASSES, undecided.causes
    except RefusedError as error:
        return Judgement(error=f"the definition cannot be evaluated: {error}"), ()
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:  # values of any form
        return Judgement(error=f"{type(error).__name__}: {error}"), ()
    if not decision.applies:
        return SKIPPED, ()
    if decision.denial is None:
        return PASSES, decision.causes
    denial = decision.denial
    # Views of the input become plain values.
    actual, expected = orjson.loads(orjson.dumps((denial.actual, denial.expected), default=plain))
    denial = Denial(msg=denial.msg, path=denial.path, actual=actual, expected=expected)
    return Judgement(denials=(denial,), excepted=decision.exemption), ()
