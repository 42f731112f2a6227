"""Options that choose the Rego engine and the OPA server, for every command that evaluates."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from policyeng.cli.context import find_known
from policyeng.engines import ENGINES, OpaOptions
from policyeng.errors import UsageError
from policyeng.frozen import frozen, replace

if TYPE_CHECKING:  # the options need typer, and a plain run does not
    from policyeng.cli import options

TOKEN_VARIABLE = "POLICYENG_OPA_TOKEN"  # noqa: S105  # the name of a variable


@frozen(kw_only=True)
class OpaServerOptions:
    """The OPA server, for commands that choose the engine themselves."""

    opa_url: options.OpaUrl = ""
    opa_token_file: options.OpaTokenFile = None
    opa_ca_file: options.OpaCaFile = None
    opa_client_cert: options.OpaClientCert = None
    opa_timeout: options.OpaTimeout = OpaOptions.timeout
    opa_binary: options.OpaBinary = None
    opa_bundle: options.OpaBundle = ""
    opa_push: options.OpaPush = None

    def opa(self) -> OpaOptions:
        """Return the options of the OPA server.

        Raises:
            UsageError: the token file cannot be read.
        """
        return OpaOptions(
            url=self.opa_url,
            token=_read_token(self.opa_token_file),
            ca_file=self.opa_ca_file,
            client_cert=self.opa_client_cert,
            timeout=self.opa_timeout,
            binary=self.opa_binary,
            bundle=self.opa_bundle,
            push=self.opa_push,
        )


@frozen(kw_only=True)
class RegoEngineOptions(OpaServerOptions):
    """The Rego engine, and the OPA server if that is the engine."""

    engine: options.Engine = "embedded"

    def rego_engine(self) -> tuple[str, OpaOptions]:
        """Return the engine and the options of the OPA server.

        Raises:
            UsageError: the engine is unknown, or it is another one and there are options of the OPA server. A token in
                the environment is allowed, since it may be for other runs.
        """
        engine, opa = find_known(self.engine, ENGINES, "engine"), self.opa()
        if engine != "opa" and replace(opa, token="") != OpaOptions():
            raise UsageError("OPA server options without `--engine opa`", remedy="add it, or remove the options")
        return engine, opa


def _read_token(file: Path | None) -> str:
    """Read the bearer token from the file or the environment; it is never on the command line."""
    if file is None:
        return os.environ.get(TOKEN_VARIABLE, "").strip()
    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise UsageError("cannot read the token", place=(str(file),), remedy="pass a text file") from None
    if not token:
        raise UsageError("the token file is empty", place=(str(file),), remedy="write the token to it")
    return token
