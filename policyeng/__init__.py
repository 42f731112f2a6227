"""Policy-as-code compliance for Azure Machine Learning.

The names below are the public interface. They are loaded on first use, which makes importing policyeng fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyeng.later import attributes

if TYPE_CHECKING:
    from policyeng.api import admit, evaluate
    from policyeng.bundle import Bundle, PolicyInput, load_bundle, policy
    from policyeng.errors import PolicyengError
    from policyeng.models import Denial, Evaluation, Exemption, Finding, Snapshot, Unknown
    from policyeng.sources import load_exemptions, load_snapshot

_HOMES = {
    "Bundle": "bundle",
    "Denial": "models",
    "Evaluation": "models",
    "Exemption": "models",
    "Finding": "models",
    "PolicyInput": "bundle",
    "PolicyengError": "errors",
    "Snapshot": "models",
    "Unknown": "models",
    "admit": "api",
    "evaluate": "api",
    "load_bundle": "bundle",
    "load_exemptions": "sources",
    "load_snapshot": "sources",
    "policy": "bundle",
}

__version__ = "0.1.0"
__all__ = [
    "Bundle",
    "Denial",
    "Evaluation",
    "Exemption",
    "Finding",
    "PolicyInput",
    "PolicyengError",
    "Snapshot",
    "Unknown",
    "admit",
    "evaluate",
    "load_bundle",
    "load_exemptions",
    "load_snapshot",
    "policy",
]


__getattr__ = attributes(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
