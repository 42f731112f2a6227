"""`policyeng bundle`: build, sign and verify policy bundles."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated

import orjson
import typer

from policyeng.bundle.assembling import bundle_of
from policyeng.bundle.files import BundleOrigin, open_origins
from policyeng.bundle.loader import Bundle
from policyeng.bundle.signature_policy import SIGNATURES
from policyeng.cli import options
from policyeng.cli.commands import Command, Group
from policyeng.cli.context import plain_format
from policyeng.cli.evaluation_options import SignatureOptions
from policyeng.cli.files import write
from policyeng.cli.option_groups import with_options
from policyeng.context import verification_of
from policyeng.errors import BundleError, UsageError
from policyeng.models import JsonObject
from policyeng.report.phrases import count

bundle = typer.Typer(
    cls=Group, help="Build, sign or verify a policy bundle.", no_args_is_help=True, add_completion=False
)


_SigningAlgorithm = Annotated[
    str,
    typer.Option(metavar="ALGORITHM", help="Signing algorithm. Default: ES256 or RS256, depending on the key type."),
]
_SigningKeyId = Annotated[str, typer.Option(metavar="ID", help="Key id to record in the signature.")]


@dataclass(kw_only=True, repr=False, eq=False)
class BuildOptions(SignatureOptions):
    """The options of `policyeng bundle build`."""

    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Archive to write, such as bundle.tar.gz.")
    ]
    policy: options.Policies = None
    revision: Annotated[
        str, typer.Option(metavar="REVISION", help="Revision for the manifest. Default: the revision of the directory.")
    ] = ""
    signing_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Private key to sign the bundle with (PEM).")
    ] = None
    signing_algorithm: _SigningAlgorithm = ""
    signing_key_id: _SigningKeyId = ""
    format_: options.PlainFormat = "text"


@bundle.command(cls=Command)
@with_options(BuildOptions)
def build(args: BuildOptions) -> int:
    """Build a reproducible bundle archive of the policies and their dependencies, for policyeng and OPA.

    Examples:
      policyeng bundle build --output bundle.tar.gz
      policyeng bundle build --policy policies --revision 2026.11 --output bundle.tar.gz --signing-key private.pem
    """
    from policyeng.bundle.archive import (
        archive_bytes,
        archive_files,  # only this command writes archives
    )
    from policyeng.bundle.signing import SigningKey
    from policyeng.engines.embedded import checked_types, compile_rego

    format_ = plain_format(args.format_)
    if args.signing_key is None and (args.signing_algorithm or args.signing_key_id):
        raise UsageError("signing options without a signing key", remedy="add `--signing-key FILE`")
    origins = open_origins(args.policy or (), verification_of(args.settings()))
    key = SigningKey.read(args.signing_key, args.signing_algorithm, args.signing_key_id) if args.signing_key else None
    built = bundle_of(origins)
    _require_policies(built)
    with checked_types():
        compile_rego(built)  # a bundle that does not compile is not written
    files = archive_files(built, origins, args.revision, key)
    content = archive_bytes(files)
    write(args.output, content, "archive", private=False)
    summary: JsonObject = {
        "archive": str(args.output),
        "revision": args.revision or built.revision,
        "digest": built.digest,
        "members": [str(path) for path in sorted(files)],
        "bytes": len(content),
        "signature": {"algorithm": key.algorithm, "keyId": key.key_id} if key else None,
    }
    _print(summary, format_, f"signed with {key.algorithm}" if key else "not signed")
    return 0


@bundle.command(cls=Command)
def sign(
    directory: Annotated[Path, typer.Argument(metavar="DIRECTORY", help="Policy directory.")],
    signing_key: Annotated[Path, typer.Option(metavar="FILE", help="Private key to sign the bundle with (PEM).")],
    signing_algorithm: _SigningAlgorithm = "",
    signing_key_id: _SigningKeyId = "",
) -> int:
    """Sign every file of a policy directory and write its `.signatures.json`.

    Examples:
      policyeng bundle sign policies --signing-key private.pem
    """
    from policyeng.bundle.files import every_file_of
    from policyeng.bundle.signing import SigningKey, signed

    if not directory.is_dir():
        remedy = "pass a directory, or sign an archive with `policyeng bundle build --signing-key FILE`"
        raise UsageError("not a directory", place=(str(directory),), remedy=remedy)
    key = SigningKey.read(signing_key, signing_algorithm, signing_key_id)
    _require_policies(bundle_of(open_origins([directory])))
    files = every_file_of(directory)
    write(directory / SIGNATURES, signed(files, key), "signature")
    typer.echo(f"{directory}: {count(len(files.keys() - {SIGNATURES}), 'file')} signed with {key.algorithm}")
    return 0


@dataclass(kw_only=True, repr=False, eq=False)
class VerifyArchiveOptions(SignatureOptions):
    """The options of `policyeng bundle verify`."""

    archive: Annotated[Path, typer.Argument(metavar="ARCHIVE", help="Bundle archive or policy directory.")]
    format_: options.PlainFormat = "text"


@bundle.command(cls=Command)
@with_options(VerifyArchiveOptions)
def verify(args: VerifyArchiveOptions) -> int:
    """Check that a bundle can be read, compiles and is signed as configured, and list its contents; exit 2 if not.

    Examples:
      policyeng bundle verify bundle.tar.gz
      policyeng bundle verify bundle.tar.gz --verification-key public.pem --format json
    """
    from policyeng.engines.embedded import checked_types, compile_rego

    format_, archive = plain_format(args.format_), args.archive
    origin, *lent = open_origins([archive], verification_of(args.settings()))
    verified = bundle_of([origin, *lent])
    _require_policies(verified)
    with checked_types():
        compile_rego(verified)
    recorded = origin.manifest.recorded_digest
    if recorded not in ("", verified.digest):
        what = f"the manifest has digest `{recorded[:12]}`, but the content has `{verified.digest[:12]}`"
        remedy = "rebuild the archive with this version of policyeng; it was altered or built by another version"
        raise BundleError(what, place=(str(archive),), remedy=remedy)
    members = [str(path) for path in sorted(origin.members)]
    summary: JsonObject = {
        "archive": str(archive),
        "revision": verified.revision,
        "digest": verified.digest,
        "members": members,
        "bytes": archive.stat().st_size if archive.is_file() else None,
        "signature": _signature(origin),
        "policies": [policy.id for policy in verified.policies],
        "lent": sorted({PurePosixPath(path).parts[0] for other in lent for path in other.tree}),
    }
    _print(summary, format_, _describe_signature(origin))
    return 0


def _signature(origin: BundleOrigin) -> JsonObject | None:
    if not origin.signed:
        return None
    signature = origin.signature
    if signature is None:
        return {"verified": False}
    return {
        "verified": True,
        "algorithm": signature.algorithm,
        "keyId": signature.key_id,
        "scope": signature.scope,
        "expires": signature.expires,
    }


def _describe_signature(origin: BundleOrigin) -> str:
    if not origin.signed:
        return "not signed"
    signature = origin.signature
    if signature is None:
        return "signed, not verified: pass the key with --verification-key"
    parts = [f"valid, {signature.algorithm}"]
    parts += [f"key {signature.key_id}"] if signature.key_id else []
    parts += [f"scope {signature.scope}"] if signature.scope else []
    parts += [f"until {signature.expires}"] if signature.expires else []
    return ", ".join(parts)


def _print(summary: JsonObject, format_: str, signature: str) -> None:
    if format_ == "json":
        typer.echo(orjson.dumps(summary, option=orjson.OPT_INDENT_2))
        return
    size = f", {summary['bytes']} bytes" if summary["bytes"] is not None else ""
    typer.echo(f"{summary['archive']}: {len(summary['members'])} members{size}")
    typer.echo(f"revision   {summary['revision'] or 'none'}")
    typer.echo(f"digest     {summary['digest']}")
    typer.echo(f"signature  {signature}")
    if "policies" in summary:
        typer.echo(f"policies   {len(summary['policies'])} compiled: {', '.join(summary['policies'])}")
        if summary["lent"]:
            typer.echo(f"built-in   {', '.join(summary['lent'])} from the built-in policies")
    for member in summary["members"]:
        typer.echo(f"  {member}")


def _require_policies(bundle: Bundle) -> None:
    if not bundle.policies:
        remedy = "pass a directory or an archive that contains policies"
        raise BundleError("no policies found", place=(bundle.name,), remedy=remedy)
