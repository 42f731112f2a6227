"""`survivors.yaml` beside the cases of a policy: the mutants that nothing can tell from it, each with a reason."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from policyeng.bundle import Policy
from policyeng.bundle.parsing import bundle_yaml
from policyeng.errors import BundleError
from policyeng.verify.mutation.edits import Mutant

_Said = Annotated[str, Field(min_length=1, pattern=r"\S")]


class Justified(BaseModel):
    """A mutant that is the policy in other words.

    Attributes:
        line: the text of the line, as the report shows it.
        mutation: the same with the fault.
        reason: why no case can tell them apart.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    line: _Said
    mutation: _Said
    reason: _Said

    def means(self, mutant: Mutant) -> bool:
        """Whether a mutant is the one, wherever its line stands."""
        return _spaced(self.line) == _spaced(mutant.before) and _spaced(self.mutation) == _spaced(mutant.after)


_LIST = TypeAdapter(list[Justified])


def read_survivors(policy: Policy) -> list[Justified]:
    """The justified survivors of a policy; none without a file.

    Raises:
        BundleError: the file is no list of `line`, `mutation` and `reason`, or one stands twice.
    """
    path = policy.cases.with_name("survivors.yaml") if policy.cases else None
    if path is None or not path.is_file():
        return []
    try:
        document = bundle_yaml(path.read_text(encoding="utf-8"), str(path))
        entries = _LIST.validate_python(document)
    except UnicodeDecodeError as error:
        raise BundleError("not UTF-8", place=(str(path),)) from error
    except ValidationError as error:
        first = error.errors()[0]
        place = "/".join(str(part) for part in first["loc"])
        remedy = "write a list of `line`, `mutation` and `reason`"
        raise BundleError(first["msg"].lower(), place=(str(path), place), remedy=remedy) from error
    seen = set()
    for entry in entries:
        key = (_spaced(entry.line), _spaced(entry.mutation))
        if key in seen:
            raise BundleError(f"the mutation `{entry.mutation}` stands twice", place=(str(path),))
        seen.add(key)
    return entries


def _spaced(text: str) -> str:
    return " ".join(text.split())
