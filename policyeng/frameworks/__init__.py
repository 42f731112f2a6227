"""Frameworks: published standards, the policies that map to their controls, and what an evaluation says of them."""

from policyeng.frameworks.documents import (
    Control,
    ControlMapping,
    Framework,
    framework_of,
    frameworks_of,
    read_framework,
)
from policyeng.frameworks.status import ControlStatus, FrameworkStatus, Score, Status, status_of

__all__ = [
    "Control",
    "ControlMapping",
    "ControlStatus",
    "Framework",
    "FrameworkStatus",
    "Score",
    "Status",
    "framework_of",
    "frameworks_of",
    "read_framework",
    "status_of",
]
