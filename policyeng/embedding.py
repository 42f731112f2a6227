"""The evaluator for programs that embed it: the same evaluation, with the clock read when none is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from policyeng.bundle import Bundle
from policyeng.bundle.parameters import refuse_unknown_ids, spread
from policyeng.bundle.profiles import with_profile
from policyeng.engines import OpaOptions
from policyeng.evaluation import evaluate as _evaluate
from policyeng.models import Evaluation, Exemption, JsonObject, Severity, Snapshot


def evaluate(
    bundle: Bundle,
    snapshot: Snapshot,
    *,
    exemptions: Sequence[Exemption] = (),
    as_of: datetime | None = None,
    parameters: Mapping[str, JsonObject] | None = None,
    profile: str | None = None,
    engine: str = "embedded",
    opa: OpaOptions | None = None,
    threads: int = 1,
    fail_on: Severity = Severity.LOW,
    strict_unknown: bool = False,
) -> Evaluation:
    """Judge a snapshot with a bundle; `as_of` is now unless given. See `policyeng.evaluation.evaluate`.

    `profile` names a set of parameters of the bundle; `parameters` go before it, and below `*` instead of a policy's id
    they are for every policy that has one of the name.

    Raises:
        UsageError: a parameter names no policy or does not fit, or the profile or the engine does not exist.
        BundleError: the profile is not well formed.
        EngineError: the bundle does not compile, or the OPA server does not answer for every pair.
    """
    given = spread(bundle, parameters or {})
    refuse_unknown_ids(bundle, given)
    return _evaluate(
        bundle,
        snapshot,
        as_of=as_of or datetime.now(UTC),
        exemptions=exemptions,
        parameters=with_profile(bundle, profile, given),
        engine=engine,
        opa=opa,
        threads=threads,
        fail_on=Severity(fail_on),
        strict_unknown=strict_unknown,
    )
