"""What expressions see: parameters, variables and functions of a template, and what it is deployed to."""

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
        id: the ARM id of a resource group, subscription or management group; empty for the tenant. Braces stand for
            what is not known.
        reason: why a part of it is not known.
    """

    id: str
    reason: str = ""

    @property
    def subscription(self) -> str:
        """The ARM id of its subscription; empty when it lies in none."""
        segments = self.id.split("/")
        return "/".join(segments[:3]) if lowered(self.id).startswith("/subscriptions/") else ""

    def stated(self, text: str) -> object:
        """An id that begins with the place, or what stands for it."""
        return Unresolved(self.reason, text) if "{" in text else text


@dataclass(frozen=True, eq=False, slots=True)
class Declared:
    """What a template declares, by name in lower case; each is evaluated when it is asked for first.

    Attributes:
        parameters, variables: what gives the value, and is called once.
        functions: what the template's own functions make of their arguments.
        known: the values that were asked for.
    """

    parameters: Mapping[str, Callable[[], object]]
    variables: Mapping[str, Callable[[], object]]
    functions: Mapping[str, Callable[..., object]]
    known: dict[tuple[str, str], object] = field(default_factory=dict)

    def value(self, kind: str, name: str) -> object:
        """The value of a parameter or variable.

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
            self.known[key] = Unresolved(f"the {one} `{name}` leads to itself", f"{{{name.replace('/', '~')}}}")
            self.known[key] = give()
        return self.known[key]


@dataclass(frozen=True, eq=False, slots=True)
class TemplateScope:
    """What an expression can see.

    Attributes:
        declared: by the template.
        place: what it is deployed to.
        work: what the expressions of the document have made.
        copies: the index of each copy loop around the expression, by name in lower case; `` is the innermost.
        local: the variables of lambdas, by name in lower case.
        outputs: what a deployment of the template gives, by its name or symbolic name in lower case, and the output's.
    """

    declared: Declared
    place: DeploymentTarget
    work: ExpressionBudget
    copies: Mapping[str, object] = field(default_factory=dict)
    local: Mapping[str, object] = field(default_factory=dict)
    outputs: Callable[[str, str], object] = lambda deployment, output: None  # noqa: ARG005  # the form of the others

    def within(self, name: str, index: object) -> TemplateScope:
        """The scope of one turn of a copy loop."""
        return replace(self, copies={**self.copies, name.lower(): index, "": index})

    def locally(self, variables: Mapping[str, object]) -> TemplateScope:
        """The scope of a lambda's body."""
        return replace(self, local={**self.local, **variables})
