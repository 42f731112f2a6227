"""One audit of a schedule with its notifications. Failures are reported, and do not end the schedule."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from policyeng.audit.execution.runner import run_estate
from policyeng.audit.notifications.notifier import lines_of, send_notifications, store_failure_messages
from policyeng.audit.records import AuditRun
from policyeng.audit.store import open_store
from policyeng.audit.store.locks import RUNNING
from policyeng.audit.store.spans import Turned
from policyeng.configuration import Settings
from policyeng.configuration.estates import EstateSettings
from policyeng.context import EvaluationSetup
from policyeng.engines import OpaOptions
from policyeng.errors import PolicyengError
from policyeng.report.phrases import count


@dataclass(frozen=True, slots=True)
class Auditing:
    """How the estates of a schedule are audited.

    Attributes:
        hold: reads the policies and exemptions of the settings, again for every run, because they change.
        say: prints a line, from several threads.
        engine, opa, jobs, full: as in `run_estate`.
        environ: the variables for the URLs of targets.
    """

    hold: Callable[[Settings], EvaluationSetup]
    say: Callable[[str], None]
    engine: str
    opa: OpaOptions
    jobs: int
    full: bool
    environ: Mapping[str, str]

    def audit(self, estate: EstateSettings, settings: Settings) -> bool:
        """Audit an estate, and notify its targets. Return whether it could be audited."""
        try:
            began = time.monotonic()
            with open_store(settings.store, create=True) as store:
                run = run_estate(
                    store,
                    estate,
                    self.hold(settings),
                    as_of=datetime.now(UTC),
                    engine=self.engine,
                    opa=self.opa,
                    jobs=self.jobs,
                    full=self.full,
                )
                self.say(_line(run, store.turned(run), time.monotonic() - began))
        except Exception as error:  # one estate that cannot be audited ends neither the schedule nor the others
            self._failed(estate, settings, error)
            return False
        finally:
            self.tell(settings)
        return True

    def tell(self, settings: Settings) -> None:
        """Send new and failed notifications, and report errors."""
        if not settings.notify:
            return
        try:
            with open_store(settings.store, create=True) as store:
                told = send_notifications(store, settings.notify, self.environ, datetime.now(UTC))
            for line in lines_of(told):
                self.say(line)
        except Exception as error:  # the run is kept, and told the next time
            self.say(f"not notified, tried again later: {reason_of(error)}")

    def failed(self, estate: EstateSettings, settings: Settings, reason: str) -> None:
        """Report that an estate was not audited, and notify its targets."""
        self.say(f"{estate.name}: not audited: {reason}")
        if not settings.notify:
            return
        try:
            with open_store(settings.store, create=True) as store:
                store_failure_messages(store, settings.notify, estate.name, reason, datetime.now(UTC))
        except Exception as error:  # most often the reason for the failure, too
            self.say(f"{estate.name}: the failure cannot be notified: {reason_of(error)}")

    def _failed(self, estate: EstateSettings, settings: Settings, error: Exception) -> None:
        if isinstance(error, PolicyengError) and error.message == RUNNING:
            self.say(f"{estate.name}: passed over: another process audits it")
        else:
            self.failed(estate, settings, reason_of(error))


def reason_of(error: Exception) -> str:
    """Return the reason of a failure on one line, with the type of an unexpected error."""
    said = str(error) if isinstance(error, PolicyengError) else f"{type(error).__name__}: {error}"
    return " ".join(said.split())


def _line(run: AuditRun, turned: Turned, seconds: float) -> str:
    counts = ", ".join(_counts(run, turned))
    return f"{run.estate}: run {run.number}: {counts}, exit {run.exit_code}, {seconds:.1f} s, head {run.hash[:12]}"


def _counts(run: AuditRun, turned: Turned) -> Iterator[str]:
    summary = run.summary
    yield count(run.parts, "part")
    yield f"{count(summary.fail, 'failure')} ({turned.new} new, {turned.fixed} fixed)"
    if summary.unknown:
        yield f"{summary.unknown} unknown"
    for number, noun in ((summary.error, "error"), (len(run.problems), "problem")):
        if number:
            yield count(number, noun)
