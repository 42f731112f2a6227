"""Archives as no one should write them, and keys, for the tests of bundles."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.bundles import deny_when, rego

END = bytes(1024)
POLICY = {"area/a/a.rego": rego("a", deny_when("true"))}


def member(
    name: str | bytes, content: bytes = b"", kind: bytes = b"0", size: int | None = None, magic: bytes = b"ustar\x0000"
) -> bytes:
    """A tar header with a right checksum, whatever its fields, and its content in whole blocks."""
    header = bytearray(512)
    raw = name.encode() if isinstance(name, str) else name
    header[: len(raw)] = raw
    header[124:136] = b"%011o\0" % (len(content) if size is None else size)
    header[156:157] = kind
    header[257:265] = magic
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + content + bytes(-len(content) % 512)


def pax(**fields: str) -> bytes:
    """An extended header for the next member; `_` is written for `.`."""
    lines = b""
    for key, value in fields.items():
        body = f" {key.replace('_', '.')}={value}\n".encode()
        length = len(body) + len(str(len(body) + 2))
        lines += str(length).encode() + body
    return member("PaxHeaders/x", lines, b"x")


def archive(path: Path, *members: bytes, end: bytes = END) -> Path:
    """A gzipped tar of raw members."""
    path.write_bytes(gzip.compress(b"".join(members) + end, mtime=0))
    return path


def packed(path: Path, files: dict[str, str | bytes], *, before: str = "", form: int = tarfile.PAX_FORMAT) -> Path:
    """A gzipped tar that `tarfile` writes, as people do with `tar czf`."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", format=form) as tar:
        for name, text in files.items():
            content = text.encode() if isinstance(text, str) else text
            entry = tarfile.TarInfo(before + name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    path.write_bytes(buffer.getvalue())
    return path


def unpacked(path: Path) -> dict[str, bytes]:
    """The files of an archive that we trust."""
    with tarfile.open(path) as tar:
        return {entry.name: tar.extractfile(entry).read() for entry in tar if entry.isfile()}  # type: ignore[union-attr]  # files have one


@dataclass(frozen=True)
class Keys:
    """A pair of keys in PEM files."""

    private: Path
    public: Path


def keys(folder: Path, kind: str) -> Keys:
    """A fresh pair of keys: `rsa`, with a number of bits or without, `p256`, `p384`, `p521`, `k1` or `ed25519`."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    curves: dict[str, Callable[[], ec.EllipticCurve]] = {
        "p256": ec.SECP256R1,
        "p384": ec.SECP384R1,
        "p521": ec.SECP521R1,
        "k1": ec.SECP256K1,
    }
    private: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey
    if kind in curves:
        private = ec.generate_private_key(curves[kind]())
    elif kind == "ed25519":
        private = ed25519.Ed25519PrivateKey.generate()
    else:
        private = rsa.generate_private_key(65537, int(kind.removeprefix("rsa") or 2048))
    pair = Keys(folder / f"{kind}.private.pem", folder / f"{kind}.public.pem")
    pair.private.write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    pair.public.write_bytes(
        private.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    return pair
