"""What is drawn for the built-in policies, for tests that hypothesis finds examples for."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import HealthCheck, settings

from policyeng.bundle import load_bundle
from policyeng.verify.strategies import examples, snapshots
from tests.effort import effort

BUNDLE = load_bundle()
EXAMPLES = examples(BUNDLE)
ESTATES = snapshots(BUNDLE)
AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
#: Deadlines measure the machine, not the law.
LAW = settings(deadline=None, max_examples=effort(30, 300), suppress_health_check=[HealthCheck.too_slow])
