"""Keep the earlier name of `policyeng.verify.generators.examples`, which users import."""

from policyeng.verify.generators.examples import Example, Examples

__all__ = ["Example", "Examples"]
