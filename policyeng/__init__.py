"""Policy-as-code compliance for Azure Machine Learning.

The names below are the public interface. They are loaded on first use, which makes importing policyeng fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyeng.later import attributes

if TYPE_CHECKING:
    from policyeng.api import admit, evaluate
    from policyeng.bundle import Bundle, PolicyInput, load_bundle, policy
    from policyeng.errors import BundleError, EngineError, InputError, PolicyengError, StoreError, UsageError
    from policyeng.models import (
        Decision,
        Denial,
        Evaluation,
        Exemption,
        Finding,
        Outcome,
        Severity,
        Snapshot,
        Unknown,
    )
    from policyeng.sources import load_changes, load_exemptions, load_snapshot

_HOMES = {
    "Bundle": "bundle",
    "BundleError": "errors",
    "Decision": "models",
    "Denial": "models",
    "EngineError": "errors",
    "Evaluation": "models",
    "Exemption": "models",
    "Finding": "models",
    "InputError": "errors",
    "Outcome": "models",
    "PolicyInput": "bundle",
    "PolicyengError": "errors",
    "Severity": "models",
    "Snapshot": "models",
    "StoreError": "errors",
    "Unknown": "models",
    "UsageError": "errors",
    "admit": "api",
    "evaluate": "api",
    "load_bundle": "bundle",
    "load_changes": "sources",
    "load_exemptions": "sources",
    "load_snapshot": "sources",
    "policy": "bundle",
}

__version__ = "0.1.0"
__all__ = [
    "Bundle",
    "BundleError",
    "Decision",
    "Denial",
    "EngineError",
    "Evaluation",
    "Exemption",
    "Finding",
    "InputError",
    "Outcome",
    "PolicyInput",
    "PolicyengError",
    "Severity",
    "Snapshot",
    "StoreError",
    "Unknown",
    "UsageError",
    "admit",
    "evaluate",
    "load_bundle",
    "load_changes",
    "load_exemptions",
    "load_snapshot",
    "policy",
]


__getattr__ = attributes(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
