"""The options of `--engine opa`, each declared once, and what they come to."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated

import typer

from policyeng.cli.context import chosen
from policyeng.cli.option_groups import with_group
from policyeng.engines import ENGINES, OpaOptions
from policyeng.errors import UsageError
from policyeng.frozen import replace

TOKEN_VARIABLE = "POLICYENG_OPA_TOKEN"  # noqa: S105  # the name of a variable

Url = Annotated[
    str,
    typer.Option("--opa-url", metavar="URL", envvar="POLICYENG_OPA_URL", help="An OPA server; else a private one."),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        "--opa-token-file",
        metavar="FILE",
        envvar="POLICYENG_OPA_TOKEN_FILE",
        help=f"The bearer token for the OPA server; else the variable {TOKEN_VARIABLE}.",
    ),
]
CaFile = Annotated[
    Path | None,
    typer.Option(
        "--opa-ca-file",
        metavar="FILE",
        envvar="POLICYENG_OPA_CA_FILE",
        help="PEM: the authorities to trust for the OPA server, instead of the public ones.",
    ),
]
ClientCert = Annotated[
    Path | None,
    typer.Option(
        "--opa-client-cert",
        metavar="FILE",
        envvar="POLICYENG_OPA_CLIENT_CERT",
        help="PEM: our certificate and its key, for an OPA server that asks for one.",
    ),
]
Timeout = Annotated[
    float,
    typer.Option(
        "--opa-timeout",
        metavar="SECONDS",
        envvar="POLICYENG_OPA_TIMEOUT",
        help="How long the OPA server may be silent before the run ends undecided.",
    ),
]
Binary = Annotated[
    Path | None,
    typer.Option(
        "--opa-binary",
        metavar="FILE",
        envvar="POLICYENG_OPA_BINARY",
        help="The `opa` program of a private server; else `opa` of the PATH.",
    ),
]
ServedBundle = Annotated[
    str,
    typer.Option(
        "--opa-bundle",
        metavar="NAME",
        envvar="POLICYENG_OPA_BUNDLE",
        help="The name under which the OPA server loads our bundle itself; else it is looked for.",
    ),
]
Push = Annotated[
    bool | None,
    typer.Option(
        "--opa-push/--no-opa-push",
        envvar="POLICYENG_OPA_PUSH",
        help="Whether to push the bundle; pushed unless the OPA server loads it itself.",
    ),
]


def with_opa(command: Callable[..., int]) -> Callable[..., int]:
    """A command with the options of the OPA server, which reach it together as its argument `opa`.

    With an argument `engine` of the command, the options are refused with an engine that has no use for them.
    """

    @wraps(command)
    def wanting(*, opa: OpaOptions, **arguments: object) -> int:
        if "engine" in arguments:
            arguments["engine"] = chosen(str(arguments["engine"]), ENGINES, "engine")
        return command(**arguments, opa=_wanted(opa, str(arguments.get("engine", "opa"))))

    return with_group(wanting, "opa", _given)


def _given(
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
    """The bearer token, which never stands on a command line."""
    if file is None:
        return os.environ.get(TOKEN_VARIABLE, "").strip()
    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise UsageError("the token cannot be read", place=(str(file),), remedy="name a text file") from None
    if not token:
        raise UsageError("the file of the token is empty", place=(str(file),), remedy="put the token there")
    return token


def _wanted(opa: OpaOptions, engine: str) -> OpaOptions:
    """Refuse options that nothing would come of; a token in the environment may be meant for other runs."""
    if engine != "opa" and replace(opa, token="") != OpaOptions():
        raise UsageError("options of the OPA server are given", remedy="add `--engine opa`, or leave them out")
    return opa
