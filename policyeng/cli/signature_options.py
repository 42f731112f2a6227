"""The options for verifying signatures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from policyeng.cli.option_groups import with_group

Key = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Public key to verify bundle archives and policy directories with (PEM).",
    ),
]
Algorithm = Annotated[
    str | None,
    typer.Option(metavar="ALGORITHM", help="Signature algorithm. Default: ES256 or RS256, depending on the key type."),
]
KeyId = Annotated[str | None, typer.Option(metavar="ID", help="Key id that signatures must have.")]
Scope = Annotated[str | None, typer.Option(metavar="SCOPE", help="Scope that signatures must have.")]
Required = Annotated[
    bool,
    typer.Option("--require-signature", help="Fail if no verification key is configured or a directory is unsigned."),
]
Unsigned = Annotated[
    bool,
    typer.Option(
        "--allow-unsigned-directory",
        help="Accept unsigned policy directories even if a verification key is configured.",
    ),
]


def with_trust(command: Callable[..., int]) -> Callable[..., int]:
    """Add the signature options to a command, as its argument `trust`, by setting name."""
    return with_group(command, "trust", _list_given)


def _list_given(
    *,
    verification_key: Key = None,
    verification_algorithm: Algorithm = None,
    verification_key_id: KeyId = None,
    verification_scope: Scope = None,
    require_signature: Required = False,
    allow_unsigned_directory: Unsigned = False,
) -> dict[str, object]:
    return {
        "verification_key": verification_key,
        "verification_algorithm": verification_algorithm,
        "verification_key_id": verification_key_id,
        "verification_scope": verification_scope,
        "require_signature": require_signature,
        "allow_unsigned_directory": allow_unsigned_directory,
    }
