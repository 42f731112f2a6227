"""The environment variables of options."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar

#: For each environment variable that sets an option of this run: the option and its value. Settings are not included.
IN_FORCE: ContextVar[Mapping[str, tuple[str, object]]] = ContextVar("IN_FORCE", default={})  # noqa: B039  # read only

#: Options with an environment variable but without a configuration key. The token of an OPA server has no option, only
#: the variable and a file.
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
