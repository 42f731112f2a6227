"""The options of `--engine opa`."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated

import typer

from policyeng.cli.context import find_known
from policyeng.cli.option_groups import with_group
from policyeng.engines import ENGINES, OpaOptions
from policyeng.errors import UsageError
from policyeng.frozen import replace

TOKEN_VARIABLE = "POLICYENG_OPA_TOKEN"  # noqa: S105  # the name of a variable

Url = Annotated[
    str,
    typer.Option(
        "--opa-url",
        metavar="URL",
        envvar="POLICYENG_OPA_URL",
        help="URL of an OPA server. Default: start a private one.",
    ),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        "--opa-token-file",
        metavar="FILE",
        envvar="POLICYENG_OPA_TOKEN_FILE",
        help=f"File with the bearer token for the OPA server. Default: the variable {TOKEN_VARIABLE}.",
    ),
]
CaFile = Annotated[
    Path | None,
    typer.Option(
        "--opa-ca-file",
        metavar="FILE",
        envvar="POLICYENG_OPA_CA_FILE",
        help="CA certificates to trust for the OPA server instead of the public ones (PEM).",
    ),
]
ClientCert = Annotated[
    Path | None,
    typer.Option(
        "--opa-client-cert",
        metavar="FILE",
        envvar="POLICYENG_OPA_CLIENT_CERT",
        help="Client certificate and key for the OPA server (PEM).",
    ),
]
Timeout = Annotated[
    float,
    typer.Option(
        "--opa-timeout",
        metavar="SECONDS",
        envvar="POLICYENG_OPA_TIMEOUT",
        help="Timeout for a response of the OPA server; the run then exits with 2.",
    ),
]
Binary = Annotated[
    Path | None,
    typer.Option(
        "--opa-binary",
        metavar="FILE",
        envvar="POLICYENG_OPA_BINARY",
        help="The `opa` program for a private server. Default: `opa` on the PATH.",
    ),
]
ServedBundle = Annotated[
    str,
    typer.Option(
        "--opa-bundle",
        metavar="NAME",
        envvar="POLICYENG_OPA_BUNDLE",
        help="Name of the bundle that the OPA server itself loads. Default: auto-detect.",
    ),
]
Push = Annotated[
    bool | None,
    typer.Option(
        "--opa-push/--no-opa-push",
        envvar="POLICYENG_OPA_PUSH",
        help="Whether to push the bundle to the OPA server. Default: push unless the server loads it itself.",
    ),
]


def with_opa(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options of the OPA server to a command, as its argument `opa`.

    If the command has an argument `engine`, the options are refused for other engines.
    """

    @wraps(command)
    def wanting(*, opa: OpaOptions, **arguments: object) -> int:
        if "engine" in arguments:
            arguments["engine"] = find_known(str(arguments["engine"]), ENGINES, "engine")
        return command(**arguments, opa=_refuse_useless(opa, str(arguments.get("engine", "opa"))))

    return with_group(wanting, "opa", _list_given)


def _list_given(
    *,
    opa_url: Url = "",
    opa_token_file: TokenFile = None,
    opa_ca_file: CaFile = None,
    opa_client_cert: ClientCert = None,
    opa_timeout: Timeout = OpaOptions.timeout,
    opa_binary: Binary = None,
    opa_bundle: ServedBundle = "",
    opa_push: Push = None,
) -> OpaOptions:
    return OpaOptions(
        url=opa_url,
        token=_token(opa_token_file),
        ca_file=opa_ca_file,
        client_cert=opa_client_cert,
        timeout=opa_timeout,
        binary=opa_binary,
        bundle=opa_bundle,
        push=opa_push,
    )


def _token(file: Path | None) -> str:
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


def _refuse_useless(opa: OpaOptions, engine: str) -> OpaOptions:
    """Refuse options without effect; a token in the environment is allowed, since it may be for other runs."""
    if engine != "opa" and replace(opa, token="") != OpaOptions():
        raise UsageError("OPA server options without `--engine opa`", remedy="add it, or remove the options")
    return opa
