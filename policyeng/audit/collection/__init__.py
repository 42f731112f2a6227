"""Read estates: part by part, so that memory stays bounded however many there are."""

from policyeng.audit.collection.parts import Collected, parts_of

__all__ = ["Collected", "parts_of"]
