"""The options for signatures: which key is trusted, and whether a directory may be unsigned."""

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
        help="A public key in PEM: archives and directories of policies have to be signed with it.",
    ),
]
Algorithm = Annotated[
    str | None,
    typer.Option(metavar="ALGORITHM", help="What signatures are made with; ES256 or RS256 by the type of the key."),
]
KeyId = Annotated[str | None, typer.Option(metavar="ID", help="The key that a signature has to name.")]
Scope = Annotated[str | None, typer.Option(metavar="SCOPE", help="The scope that a signature has to state.")]
Required = Annotated[
    bool, typer.Option("--require-signature", help="Fail without a verification key, and allow no unsigned directory.")
]
Unsigned = Annotated[
    bool,
    typer.Option(
        "--allow-unsigned-directory", help="Read directories of policies that carry no signature, despite the key."
    ),
]


def with_trust(command: Callable[..., int]) -> Callable[..., int]:
    """A command with the options about signatures; they reach it as `trust`, by the names of their settings."""
    return with_group(command, "trust", _given)


def _given(
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
