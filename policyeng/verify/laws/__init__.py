"""The laws of consistency, each a sentence that every example of a bundle is tried on."""

from policyeng.verify.laws.law import Law

__all__ = ["LAWS"]

#: In the order of their numbers.
LAWS: tuple[Law, ...] = ()
