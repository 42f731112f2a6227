"""The laws of consistency: properties that every example of a bundle is tested for."""

from __future__ import annotations

from collections.abc import Sequence

from policyeng.errors import UsageError, suggest_nearest
from policyeng.verify.laws import header_laws, outcome_laws, read_laws
from policyeng.verify.laws.law import Law

__all__ = ["LAWS", "Law", "laws_named"]

#: Every law in the order of its number; missing numbers were laws of the engine, which its own tests cover.
LAWS: tuple[Law, ...] = (
    outcome_laws.DETERMINISM,
    outcome_laws.ORDER_INDEPENDENCE,
    read_laws.LAW,
    outcome_laws.TOTALITY,
    outcome_laws.ENGINES,
    outcome_laws.BOTH_SIDES,
    outcome_laws.SATISFIABILITY,
    header_laws.REMEDIATION,
    header_laws.MONOTONICITY,
    header_laws.INVARIANCE,
)


def laws_named(names: Sequence[str]) -> tuple[Law, ...]:
    """Return the laws with some numbers or names, in the order of `LAWS`; all laws if there are no names.

    Raises:
        UsageError: no law has one of the numbers or names.
    """
    known = {key: law for law in LAWS for key in (str(law.number), law.name)}
    chosen = set()
    for name in names:
        law = known.get(name.strip().lower())
        if law is None:
            remedy = f"the laws are {', '.join(f'{entry.number} {entry.name}' for entry in LAWS)}"
            raise UsageError(f"no law is called `{name}`{suggest_nearest(name, known)}", remedy=remedy)
        chosen.add(law.number)
    return tuple(law for law in LAWS if not names or law.number in chosen)
