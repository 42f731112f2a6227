"""The scope of expressions: parameters, variables and functions of a template, and what it is deployed to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from policyeng.models import lowered
from policyeng.sources.arm_template.unresolved import ExpressionBudget
from policyeng.sources.template_parameters import Unresolved


class DeploymentTarget(NamedTuple):
    """What a template is deployed to.

    Attributes:
        id: the ARM id of a resource group, subscription or management group; empty for the tenant. Unknown
            parts are in braces.
        reason: why a part of it is not known.
    """

    id: str
    reason: str = ""

    @property
    def subscription(self) -> str:
        """The ARM id of its subscription; empty if it is not in one."""
        segments = self.id.split("/")
        return "/".join(segments[:3]) if lowered(self.id).startswith("/subscriptions/") else ""

    def stated(self, text: str) -> object:
        """Return an id that begins with the place, or its stand-in."""
        return Unresolved(self.reason, text) if "{" in text else text


@dataclass(frozen=True, eq=False, slots=True)
class Declared:
    """The declarations of a template, by name in lower case; each is evaluated on first use.

    Attributes:
        parameters, variables: functions that return the value and are called once.
        functions: the template's own functions.
        known: the values that were evaluated.
    """

    parameters: Mapping[str, Callable[[], object]]
    variables: Mapping[str, Callable[[], object]]
    functions: Mapping[str, Callable[..., object]]
    known: dict[tuple[str, str], object] = field(default_factory=dict)

    def value(self, kind: str, name: str) -> object:
        """Return the value of a parameter or variable.

        Args:
            kind: `parameters` or `variables`.
            name: as the expression writes it.
        """
        key = (kind, name.lower())
        if key not in self.known:
            one = kind[:-1]
            give = (self.parameters if kind == "parameters" else self.variables).get(name.lower())
            if give is None:
                return Unresolved(f"the template declares no {one} `{name}`", f"{{{name.replace('/', '~')}}}")
            self.known[key] = Unresolved(f"the {one} `{name}` refers to itself", f"{{{name.replace('/', '~')}}}")
            self.known[key] = give()
        return self.known[key]


@dataclass(frozen=True, eq=False, slots=True)
class TemplateScope:
    """The scope of an expression.

    Attributes:
        declared: the declarations of the template.
        place: what it is deployed to.
        work: the budget of the document's expressions.
        copies: the index of each enclosing copy loop, by name in lower case; the empty name is the innermost.
        local: the variables of lambdas, by name in lower case.
        outputs: return an output of a deployment, by the deployment's name or symbolic name and the output's name.
    """

    declared: Declared
    place: DeploymentTarget
    work: ExpressionBudget
    copies: Mapping[str, object] = field(default_factory=dict)
    local: Mapping[str, object] = field(default_factory=dict)
    outputs: Callable[[str, str], object] = lambda deployment, output: None  # noqa: ARG005  # the signature is fixed

    def within(self, name: str, index: object) -> TemplateScope:
        """Return the scope of one iteration of a copy loop."""
        return replace(self, copies={**self.copies, name.lower(): index, "": index})

    def locally(self, variables: Mapping[str, object]) -> TemplateScope:
        """Return the scope of a lambda's body."""
        return replace(self, local={**self.local, **variables})
