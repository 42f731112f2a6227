"""The public functions for programs that embed policyeng; the time defaults to now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import TypeVar

from policyeng.admission import AdmissionOptions, Changes
from policyeng.admission import admit as _admit
from policyeng.bundle import Bundle
from policyeng.bundle.parameters import refuse_unknown_ids, spread_parameters
from policyeng.bundle.policy_selection import with_profile
from policyeng.engines import OpaOptions
from policyeng.errors import UsageError, suggest_nearest
from policyeng.evaluation import EvaluationOptions
from policyeng.evaluation import evaluate as _evaluate
from policyeng.models import Blame, Decision, Enforcement, Evaluation, Exemption, JsonObject, Severity, Snapshot

_E = TypeVar("_E", bound=StrEnum)


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
    jobs: int = 1,
    fail_on: Severity = Severity.LOW,
    strict_unknown: bool = False,
) -> Evaluation:
    """Evaluate a snapshot with a bundle; `as_of` defaults to now. See `policyeng.evaluation.EvaluationOptions`.

    `profile` names a set of parameters of the bundle, which `parameters` override. Parameters under `*` instead of a
    policy id apply to every policy that defines them.

    Raises:
        UsageError: an argument has the wrong type, a parameter is not valid or its policy does not exist, or the
            profile or engine does not exist.
        BundleError: the profile is not well formed.
        EngineError: the bundle does not compile, or the OPA server does not return a result for every pair.
    """
    _check_loaded(bundle, snapshot)
    _check_entries(exemptions, Exemption, "exemptions", _LOAD_EXEMPTIONS)
    options = EvaluationOptions(
        as_of=_check_moment(as_of),
        exemptions=exemptions,
        parameters=parameters_of(bundle, profile, parameters),
        engine=engine,
        opa=opa,
        jobs=jobs,
        fail_on=_find_member(Severity, fail_on, "fail_on"),
        strict_unknown=strict_unknown,
    )
    return _evaluate(bundle, snapshot, options)


def admit(
    bundle: Bundle,
    snapshot: Snapshot,
    change: Changes,
    *,
    exemptions: Sequence[Exemption] = (),
    as_of: datetime | None = None,
    before: Changes = (),
    parameters: Mapping[str, JsonObject] | None = None,
    profile: str | None = None,
    engine: str = "embedded",
    opa: OpaOptions | None = None,
    fail_on: Severity = Severity.LOW,
    strict_unknown: bool = False,
    modes: Sequence[Enforcement] = (),
    blame: Blame = Blame.TOUCHED,
    standing: bool = False,
) -> Decision:
    """Decide whether a change to a snapshot is allowed; `as_of` defaults to now. See `policyeng.admission.admit`.

    `change` is what `load_changes` returns; or a parsed document that `load_changes` reads, such as a resource, a plan
    or a list of changes; or the ARM id of a resource to delete; or a `Change`, or a list of these. `before` has the
    same forms: the changes already made to the snapshot. `profile` and `parameters` are as for `evaluate`.

    Raises:
        InputError: nothing in the change can be read, or it states no change; or something in `before` cannot be read.
        UsageError: an argument has the wrong type, a parameter or mode is not valid or its policy does not exist, or
            the profile or engine does not exist.
        BundleError: the profile is not well formed.
        EngineError: the bundle does not compile, or the OPA server does not return a result for every pair.
    """
    _check_loaded(bundle, snapshot)
    _check_entries(exemptions, Exemption, "exemptions", _LOAD_EXEMPTIONS)
    _check_entries(modes, Enforcement, "modes", "give a list of `policyeng.models.Enforcement`")
    options = AdmissionOptions(
        as_of=_check_moment(as_of),
        exemptions=exemptions,
        parameters=parameters_of(bundle, profile, parameters),
        engine=engine,
        opa=opa,
        fail_on=_find_member(Severity, fail_on, "fail_on"),
        strict_unknown=strict_unknown,
        modes=modes,
        blame=_find_member(Blame, blame, "blame"),
        standing=standing,
    )
    return _admit(bundle, snapshot, change, options, before=before)


def _check_loaded(bundle: object, snapshot: object) -> None:
    """Check the types of the arguments that other functions load.

    Raises:
        UsageError: one has another type.
    """
    for given, kind, function in ((bundle, Bundle, "load_bundle"), (snapshot, Snapshot, "load_snapshot")):
        if not isinstance(given, kind):
            message = f"a {kind.__name__} is needed, not `{type(given).__name__}`"
            raise UsageError(message, remedy=f"pass it through `policyeng.{function}`")


_LOAD_EXEMPTIONS = "read them with `policyeng.load_exemptions`"


def _check_entries(entries: object, kind: type, name: str, remedy: str) -> None:
    """Check the types of the entries of an argument.

    Raises:
        UsageError: it is not a list of these, such as a text or a path.
    """
    if not isinstance(entries, Sequence) or not all(isinstance(entry, kind) for entry in entries):
        raise UsageError(f"`{name}` is not a list of `{kind.__name__}`", remedy=remedy)


def _check_moment(as_of: object) -> datetime:
    """Return the evaluation time, by default now.

    Raises:
        UsageError: it is not a time with a zone.
    """
    if as_of is None:
        return datetime.now(UTC)
    if not isinstance(as_of, datetime) or as_of.tzinfo is None:
        remedy = "give a datetime with a zone, such as `datetime(2026, 6, 1, tzinfo=UTC)`"
        raise UsageError(f"`as_of` is not a time with a zone: `{as_of!r}`", remedy=remedy)
    return as_of


def _find_member(kind: type[_E], value: object, name: str) -> _E:
    """Return the member of an enumeration for an argument.

    Raises:
        UsageError: there is none.
    """
    try:
        return kind(str(value))
    except ValueError:
        known = [str(member.value) for member in kind]
        message = f"`{name}` cannot be `{value}`{suggest_nearest(str(value), known)}"
        raise UsageError(message, remedy=f"it is one of {', '.join(known)}") from None


def parameters_of(
    bundle: Bundle, profile: str | None, parameters: Mapping[str, JsonObject] | None
) -> Mapping[str, JsonObject]:
    """Return, by policy id, the values that override the defaults; the arguments are as for `evaluate`.

    Raises:
        UsageError: the policy of a parameter does not exist, or the profile does not exist.
        BundleError: the profile is not well formed.
    """
    if not isinstance(parameters, Mapping | None):
        message = f"`parameters` is not a mapping: `{type(parameters).__name__}`"
        raise UsageError(message, remedy="give the parameters of each policy by its id")
    given = spread_parameters(bundle, parameters or {})
    refuse_unknown_ids(bundle, given)
    return with_profile(bundle, profile, given)
