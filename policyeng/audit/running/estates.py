"""A run of an estate, from its parts to its hash."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from policyeng.audit.collecting.parts import parts_of
from policyeng.audit.history import Run
from policyeng.audit.running.judging import JudgedPart, judged_part, terms_of
from policyeng.audit.store import Store
from policyeng.audit.store.drafting import Draft, drafted
from policyeng.audit.store.kept_bundles import kept_bundle
from policyeng.bundle import Bundle
from policyeng.configuration.estates import EstateSettings
from policyeng.engines import OpaOptions, engine_version
from policyeng.in_force import Held
from policyeng.models import BundleRef, EngineRef, Problem, Summary


def run_estate(
    store: Store,
    estate: EstateSettings,
    held: Held,
    *,
    as_of: datetime,
    engine: str = "embedded",
    opa: OpaOptions | None = None,
    jobs: int = 1,  # noqa: ARG001  # one process judges, so far
    full: bool = False,  # noqa: ARG001  # what did not change is judged again, so far
) -> Run:
    """Audit an estate: read and judge its parts, and keep them as one run.

    Args:
        store: where it is kept.
        estate: what is audited.
        held: what is judged with.
        as_of: the evaluation clock.
        engine: what judges Rego.
        opa: which OPA judges, for that engine.
        jobs: how many processes judge.
        full: judge also what did not change since the last run.

    Raises:
        StoreError: the estate is being audited already, or the store refuses something.
        EngineError: the bundle does not compile, or the engine does not answer.
    """
    started, terms = datetime.now(UTC), terms_of(held, as_of, engine, opa)
    with drafted(store, estate.name, kept_bundle(held.bundle)) as draft:
        tally = Tally()
        for part in parts_of(estate, held.bundle.wanted):
            tally.add(judged_part(part, terms), draft)
        problems = (*tally.problems, *held.problems, *tally.on_exemptions())

        return draft.finish(
            Run(
                number=0,
                estate=estate.name,
                started_at=started,
                finished_at=datetime.now(UTC),
                as_of=terms.as_of,
                inputs=estate.inputs,
                bundle=reference_of(held.bundle),
                engine=EngineRef(name=engine, version=engine_version(engine, opa)),
                parameters=held.parameters,
                exemptions=tuple(held.exemptions),
                fail_on=terms.fail_on,
                strict_unknown=terms.strict_unknown,
                exit_code=max(tally.exit_code, 2 * has_errors(problems)),
                summary=added(tally.summaries),
                parts=tally.parts,
                problems=problems,
                content="",
                previous="",
                hash="",
            )
        )


class Tally:
    """What is known of a run while its parts go by."""

    def __init__(self) -> None:
        self.parts = 0
        self.exit_code = 0
        self.summaries: list[Summary] = []
        self.problems: list[Problem] = []
        self._exempting: frozenset[tuple[str, str]] | None = None

    def add(self, part: JudgedPart, draft: Draft) -> None:
        """Take a part, and hand it to the store."""
        draft.add(part.entry)
        self.parts += 1
        self.exit_code = max(self.exit_code, part.entry.exit_code)
        self.summaries.append(part.summary)
        self.problems += part.problems
        if part.exempting is not None:
            self._exempting = part.exempting if self._exempting is None else self._exempting & part.exempting

    def on_exemptions(self) -> list[Problem]:
        """What every part says of an exemption: that it is not in force, or covers nothing."""
        said = sorted(self._exempting or ())
        return [Problem(level="warning", message=message, place=place) for place, message in said]


def has_errors(problems: Iterable[Problem]) -> bool:
    """Whether something could not be decided."""
    return any(problem.level == "error" for problem in problems)


def reference_of(bundle: Bundle) -> BundleRef:
    """How a run and an evaluation name a bundle."""
    return BundleRef(name=bundle.name, revision=bundle.revision, digest=bundle.digest)


def added(summaries: Iterable[Summary]) -> Summary:
    """The summary over the findings of several evaluations."""
    counted: Sequence[Summary] = list(summaries)
    passed, failed, unknown, error, exempt = (
        sum(getattr(summary, name) for summary in counted) for name in ("pass_", "fail", "unknown", "error", "exempt")
    )
    total = passed + failed + unknown + error or 1
    return Summary(
        pass_=passed,
        fail=failed,
        unknown=unknown,
        error=error,
        exempt=exempt,
        strict_compliance=round(100 * passed / total, 2),
        azure_compliance=round(100 * (passed + exempt + unknown) / total, 2),
    )
