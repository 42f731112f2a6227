"""Reading of estates, part by part to limit memory."""

from policyeng.audit.collection.parts import Collected, parts_of

__all__ = ["Collected", "parts_of"]
