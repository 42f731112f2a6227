"""Results of rules written for Conftest: texts or objects with a `msg`, and exceptions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from policyeng.bundle import Policy
from policyeng.engines.request import (
    Judgement,
)
from policyeng.models import Denial, ExemptionMark

if TYPE_CHECKING:
    pass


def convert_conftest_result(policy: Policy, elements: Iterable[object], exceptions: object) -> Judgement:
    """Return the result of a Conftest policy from the elements of its rule and of its `exception` rule, as JSON."""
    try:
        denials = tuple(_conftest_denial(element) for element in elements)
    except TypeError as error:
        return Judgement(error=str(error))
    return Judgement(denials=denials, excepted=_find_exception(policy, exceptions) if denials else None)


def _conftest_denial(element: object) -> Denial:
    """Convert an element; known members become fields if they have the right type, and the rest becomes `actual`."""
    if isinstance(element, str):
        return Denial(msg=element)
    if not isinstance(element, dict) or not isinstance(element.get("msg"), str):
        raise TypeError("an element of the rule is neither a string nor an object with a string `msg`")
    rest = {key: value for key, value in element.items() if key != "msg"}
    path = rest.pop("path") if isinstance(rest.get("path"), str) and rest["path"].startswith("/") else ""
    expected = rest.pop("expected", None)
    actual = rest["actual"] if set(rest) == {"actual"} else rest or None
    return Denial(msg=element["msg"], path=path, actual=actual, expected=expected)


def _find_exception(policy: Policy, exceptions: object) -> ExemptionMark | None:
    """Return the mark if `exception[_][_] == "run_as_root"`, as Conftest defines it for `deny_run_as_root`."""
    from policyeng.bundle.external_policies import exception_name  # few policies are of this kind

    rules = dict(policy.rules)
    name = exception_name(rules["deny"].rpartition(".")[2])
    if not any(value == name for held in _members(exceptions) for value in _members(held)):
        return None
    reason = f"the rule excepts `{name}`" if name else "the rule excepts this rule"
    return ExemptionMark(id=rules["exception"], category="exception", reason=reason)


def _members(held: object) -> Iterable[object]:
    return held.values() if isinstance(held, dict) else held if isinstance(held, list) else ()
