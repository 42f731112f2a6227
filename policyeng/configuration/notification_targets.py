"""The `[[notify]]` tables: notification targets of audits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from policyeng.frozen import frozen
from policyeng.models import UNCHECKED, Model, Severity

if TYPE_CHECKING:
    from pydantic import SecretStr as Secret
else:  # pydantic is only loaded to read the table
    Secret = Annotated[object, UNCHECKED]


@frozen(kw_only=True)
class Notifying(Model):
    """One `[[notify]]` table: a target, and which findings it receives.

    Attributes:
        name: letters, digits, `-`, `_` and `.`; unique.
        url: an apprise URL, in which `${NAME}` refers to the environment; never printed.
        estates: estate names; all if empty.
        owners: values of the tag `owner`, ignoring case; all if empty.
        severity: the lowest severity of findings.
        per_hour: the maximum number of messages per hour; further messages are combined.
        inherited_from: the configuration file that sets it, if that was found in a parent directory; `${NAME}` in the
            URL is not expanded then. Not a key of the table.
    """

    name: str
    url: Secret
    estates: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    severity: Severity = Severity.LOW
    per_hour: int = 20
    inherited_from: str = ""
