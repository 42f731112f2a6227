"""Modules that only an extra installs, for the message where a command needs one of them."""

from __future__ import annotations

from policyeng.errors import UsageError

#: The modules of each extra of `pyproject.toml`, by the names that are imported. Of two extras with the same module,
#: the first is the one that commands need.
_MODULES = {
    "signing": ("cryptography", "jwt"),
    "server": ("fastapi", "httptools", "prometheus_client", "starlette", "uvicorn", "uvloop"),
    "audit": ("alembic", "apprise", "cronsim", "sqlalchemy"),
    "postgresql": ("psycopg",),
    "azure": ("azure",),
    "verify": ("hypothesis",),
    "spark": ("pandas", "pyarrow", "pyspark"),
    "rego": ("graphql", "tzdata"),
}


def explain_missing_module(error: ModuleNotFoundError) -> UsageError | None:
    """Return what to install for a module that was not found; None if it is of no extra."""
    module = (error.name or "").partition(".")[0]
    extra = next((extra for extra, modules in _MODULES.items() if module in modules), None)
    if extra is None:
        return None
    return UsageError(f"this needs `{module}`, which is not installed", remedy=f"install `policyeng[{extra}]`")
