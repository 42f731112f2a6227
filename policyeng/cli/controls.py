"""The frameworks of `policyeng check`: the policies that they need, and their controls in the report."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from policyeng.configuration import Settings
from policyeng.context import EvaluationSetup
from policyeng.errors import UsageError
from policyeng.frameworks import Framework, evaluate_framework, framework_of
from policyeng.models import Evaluation, Snapshot


def narrow(setup: EvaluationSetup, settings: Settings) -> tuple[EvaluationSetup, Sequence[Framework]]:
    """Return the setup with the policies that test controls of the frameworks of the settings, and the frameworks.

    Raises:
        UsageError: a framework does not exist, is not well formed or is named twice, or no policy is left.
    """
    frameworks: list[Framework] = []
    place = (settings.origins.get("frameworks", ""),)
    for name in settings.frameworks:
        framework = framework_of(setup.bundle, name)
        if any(framework.id == other.id for other in frameworks):
            raise UsageError(f"two frameworks have the id `{framework.id}`", place=place, remedy="name it once")
        frameworks.append(framework)
    controls = [control for framework in frameworks for control in framework.controls]
    direct = {mapping.id for control in controls for mapping in control.policies if mapping.is_direct}
    bundle = setup.bundle.only(policy for policy in setup.bundle.policies if policy.id in direct)
    if not bundle.policies:
        names = ", ".join(f"`{framework.id}`" for framework in frameworks)
        raise UsageError(f"no selected policy tests a control of {names}", place=place, remedy="change the selection")
    return replace(setup, bundle=bundle), frameworks


def with_frameworks(
    evaluation: Evaluation, frameworks: Sequence[Framework], setup: EvaluationSetup, snapshot: Snapshot
) -> Evaluation:
    """Return an evaluation with the results for the controls of frameworks."""
    results = (evaluate_framework(one, evaluation, setup.bundle, snapshot, setup.parameters) for one in frameworks)
    return evaluation.model_copy(update={"frameworks": tuple(results)})
