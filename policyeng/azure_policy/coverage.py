"""What of definitions and initiatives is evaluated, and why the rest is not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from policyeng.azure_policy.aliases import AliasTable
from policyeng.azure_policy.assignments import EffectivePolicy
from policyeng.azure_policy.effects import CompiledPolicy
from policyeng.azure_policy.expressions import RefusedError
from policyeng.models import lowered


class PolicyCoverage(Struct, frozen=True):
    """One policy.

    Attributes:
        effect: as parameters decide it; empty if they have no value.
        types: the types that it names; none for any.
        without_value: the parameters that neither an assignment nor a default sets.
        refusal: why it is not evaluated; empty if it is.
        kind: of the refusal.
    """

    id: str
    title: str
    mode: str
    effect: str
    types: Sequence[str]
    without_value: Sequence[str]
    refusal: str
    kind: str
    file: str

    @property
    def status(self) -> str:
        """What happens with it: `evaluated`, `disabled` or `refused`."""
        return "refused" if self.refusal else "disabled" if self.effect.lower() == "disabled" else "evaluated"


def coverage_of(policies: Iterable[EffectivePolicy], aliases: AliasTable) -> list[PolicyCoverage]:
    """Compile policies, and return what becomes of each."""
    return [_coverage_of(policy, CompiledPolicy(policy, aliases)) for policy in policies]


def _coverage_of(policy: EffectivePolicy, compiled: CompiledPolicy) -> PolicyCoverage:
    definition = policy.definition
    types = sorted(compiled.types or ())
    refusal = kind = ""
    try:
        for name in types or [""]:
            compiled.require_compiled(lowered(name))
    except RefusedError as error:
        refusal, kind = str(error), error.kind
    values = definition.defaults | dict(policy.values)
    without = [name for name in definition.parameters if values.get(lowered(name)) is None]
    return PolicyCoverage(
        policy.id,
        definition.title,
        definition.mode,
        compiled.static_effect,
        types,
        without,
        refusal,
        kind,
        definition.place,
    )
