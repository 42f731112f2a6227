"""Facts for policies: the catalogue as values, and the shared terms, with a module for each subject.

A policy gets `Facts` as `given.facts`; everything else is imported from its own module. Together with
`policies/lib` this is one library in two languages: docs/adr/0012-one-library-in-two-languages.md.
"""

from policyeng.facts.catalogue import Facts

__all__ = ["Facts"]
