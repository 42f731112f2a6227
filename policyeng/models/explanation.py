"""Explanations of findings and of queries: what was true, false and not known, with the values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from policyeng.models.findings import Finding, Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanationNode:
    """A rule, an expression of it, or what a Python policy read.

    Attributes:
        outcome: `true`, `false`, `undefined` (a reference without a value) or `unknown` of an expression; also `value`
            of a rule or a read.
        text: the expression as it is written, the path of the rule, or the pointer of the read.
        file, line: where it is; line 0 if that is not known.
        values: of references, calls and variables, by their text; `result` is the value of a rule.
        missing: the reference without a value.
        unknown: what is not known, and why.
        solutions: how often an expression held; more than once if it is a loop.
        parts: what was evaluated within it, in that order.
    """

    kind: Literal["rule", "expression", "read"]
    outcome: str
    text: str
    file: str = ""
    line: int = 0
    values: Mapping[str, Any] = field(default_factory=dict)
    missing: str = ""
    unknown: tuple[Unknown, ...] = ()
    solutions: int = 0
    parts: tuple[ExplanationNode, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingExplanation:
    """Why a policy has a finding.

    Attributes:
        is_whole: False if the evaluation was too long to record all of it.
    """

    finding: Finding
    nodes: tuple[ExplanationNode, ...]
    is_whole: bool = True
