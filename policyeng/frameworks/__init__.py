"""Frameworks: published standards, the policies that map to their controls, and what an evaluation says of them."""

from policyeng.frameworks.documents import (
    Control,
    Framework,
    framework_of,
    frameworks_of,
    read_framework,
    tested_controls,
)
from policyeng.frameworks.status import DECIDED, evaluate_framework

__all__ = [
    "DECIDED",
    "Control",
    "Framework",
    "evaluate_framework",
    "framework_of",
    "frameworks_of",
    "read_framework",
    "tested_controls",
]
