"""What policies know without being told: the catalogue as values, and what its words mean, one module for each.

The face is `Facts`, which a policy is given as `given.facts`; everything else is imported from its own module. With
`policies/lib` this is one library in two languages: docs/adr/0012-one-library-in-two-languages.md.
"""

from policyeng.facts.catalogue import Facts

__all__ = ["Facts"]
