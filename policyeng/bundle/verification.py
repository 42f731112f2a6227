"""Which signatures of bundles are trusted, and what one that holds says. Most runs verify none and load no more."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from policyeng.errors import UsageError

SIGNATURES = PurePosixPath(".signatures.json")


@dataclass(frozen=True, slots=True)
class Verification:
    """Which signatures are trusted.

    Attributes:
        key: a file with a public key or a certificate in PEM. With it every archive has to be signed.
        algorithm: ES, RS or PS with 256, 384 or 512; by the type of the key when empty.
        key_id: the key that the signature has to name; any when empty.
        scope: the scope that the signature has to state; it must state none when empty, as in OPA.
        required: directories have to be signed too, and a key has to be configured.
    """

    key: Path | None = None
    algorithm: str = ""
    key_id: str = ""
    scope: str = ""
    required: bool = False

    def require_key(self) -> Path:
        """The key.

        Raises:
            UsageError: none is configured.
        """
        if self.key is None:
            remedy = "name the public key with `--verification-key FILE`"
            raise UsageError("signatures are to be verified, and no key is configured", remedy=remedy)
        return self.key


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature that holds: with which algorithm, by which key, for which scope and until when."""

    algorithm: str
    key_id: str = ""
    scope: str = ""
    expires: str = ""
