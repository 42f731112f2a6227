"""Who is told of an audit."""

from __future__ import annotations

from pydantic import SecretStr

from policyeng.models import Model, Severity


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
    url: SecretStr
    estates: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    severity: Severity = Severity.LOW
    per_hour: int = 20
    inherited_from: str = ""
