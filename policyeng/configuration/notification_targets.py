"""Who is told of an audit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from policyeng.frozen import frozen
from policyeng.models import UNCHECKED, Model, Severity

if TYPE_CHECKING:
    from pydantic import SecretStr as Secret
else:  # the table is read apart, and pydantic is loaded then
    Secret = Annotated[object, UNCHECKED]


@frozen(kw_only=True)
class Notifying(Model):
    """One `[[notify]]` table: a target, and what it is told.

    Attributes:
        name: letters, digits, `-`, `_` and `.`; unique.
        url: as apprise has it, with `${NAME}` for what is taken from the environment; never printed.
        estates: their names; without any, all.
        owners: values of the tag `owner`, in any letter case; without any, all.
        severity: findings at or above it.
        per_hour: how many messages at most it is sent in an hour; what goes beyond is put together.
        inherited_from: the configuration file that sets it, where a search found that in a parent directory; no
            `${NAME}` of its URL is expanded then. Not a key of the table.
    """

    name: str
    url: Secret
    estates: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    severity: Severity = Severity.LOW
    per_hour: int = 20
    inherited_from: str = ""
