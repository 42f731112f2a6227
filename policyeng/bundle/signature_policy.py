"""Which bundle signatures are trusted, and the content of a valid one. Most runs verify none and load only this."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from msgspec import Struct

from policyeng.errors import UsageError

SIGNATURES = PurePosixPath(".signatures.json")


class Verification(Struct, frozen=True):
    """Which signatures are trusted.

    Attributes:
        key: a file with a public key or a certificate in PEM. With it every archive and directory has to be signed.
        algorithm: ES, RS or PS with 256, 384 or 512; by the type of the key when empty.
        key_id: the key that the signature has to name; any when empty.
        scope: the scope that the signature has to state; it must state none when empty, as in OPA.
        required: a key has to be configured, and no directory may be unsigned.
        allow_unsigned_directory: a directory without a `.signatures.json` is read as it is, its Python included.
    """

    key: Path | None = None
    algorithm: str = ""
    key_id: str = ""
    scope: str = ""
    required: bool = False
    allow_unsigned_directory: bool = False

    def require_key(self) -> Path:
        """Return the key.

        Raises:
            UsageError: none is configured, or unsigned directories are both refused and allowed.
        """
        if self.required and self.allow_unsigned_directory:
            remedy = "remove `require_signature` or `allow_unsigned_directory`"
            raise UsageError("signatures are required, and unsigned directories are allowed", remedy=remedy)
        if self.key is None:
            remedy = "name the public key with `--verification-key FILE`"
            raise UsageError("signatures are to be verified, and no key is configured", remedy=remedy)
        return self.key


class Signature(Struct, frozen=True):
    """A valid signature: with which algorithm, by which key, for which scope and until when."""

    algorithm: str
    key_id: str = ""
    scope: str = ""
    expires: str = ""
