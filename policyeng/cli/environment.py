"""The environment variables of the command line, without the options that they belong to."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar

#: By variable in force, the option of this run's command that it sets, and the value; settings have none of their own.
IN_FORCE: ContextVar[Mapping[str, tuple[str, object]]] = ContextVar("IN_FORCE", default={})  # noqa: B039  # read only

#: Options that have an environment variable of their own and no key in the configuration file; for the token of an OPA
#: server there is nothing else beside its file.
ENVIRONMENT = (
    "policy",
    "snapshot",
    "data",
    "no-exemptions",
    "from",
    "scope",
    "workspace",
    "parameters",
    "show-skipped",
    "no-gitignore",
    "format",
    "group-by",
    "owner-tag",
    "as-of",
    "engine",
    "jobs",
    "baseline",
    "traceback",
    "cache-dir",
    "no-cache",
    "opa-url",
    "opa-token",
    "opa-token-file",
    "opa-ca-file",
    "opa-client-cert",
    "opa-timeout",
    "opa-binary",
    "opa-bundle",
    "opa-push",
)
