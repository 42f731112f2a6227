"""`policyeng policies`: what the policies are, and what one of them says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Annotated

import orjson
import typer

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.parameters import parameters_of
from policyeng.bundle.profiles import Profile, profiles_of, with_profile
from policyeng.cli import options
from policyeng.cli.loading import bundle_of, require_plain, selected_bundle, settings_of
from policyeng.cli.trust import with_trust
from policyeng.errors import UsageError, nearest
from policyeng.models import JsonObject

policies = typer.Typer(help="List policies, or show one.", no_args_is_help=True)


@policies.command(name="list")
@with_trust
def list_policies(
    policy: options.Policies = None,
    data: options.GivenData = None,
    select: options.Select = None,
    ignore: options.Ignore = None,
    engine: Annotated[bool, typer.Option("--engine", help="Say what judges each policy, and why.")] = False,
    profiles: Annotated[bool, typer.Option("--profiles", help="List the profiles that `check` takes instead.")] = False,
    format_: options.PlainFormat = "text",
    config: options.Config = None,
    *,
    trust: Mapping[str, object],
) -> int:
    """List the policies (id, severity, language and title), or their profiles."""
    require_plain(format_)
    bundle = selected_bundle(policy, settings_of(trust, config), data, select, ignore)
    if profiles:
        _print_profiles(profiles_of(bundle), format_)
        return 0
    judged_by = _judged_by(bundle) if engine else {}
    if format_ == "json":
        entries = [{**described(entry), **_engine_fields(judged_by, entry)} for entry in bundle.policies]
        typer.echo(orjson.dumps(entries, option=orjson.OPT_INDENT_2))
        return 0
    for entry in bundle.policies:
        how = f"  {' '.join(filter(None, judged_by[entry.id])):12}" if engine else ""
        typer.echo(f"{entry.id:12} {entry.header.severity:9} {entry.language:7}{how} {entry.header.title}")
    number = "1 policy" if len(bundle.policies) == 1 else f"{len(bundle.policies)} policies"
    typer.echo(f"{number}, revision {bundle.revision or 'none'}, digest {bundle.digest[:12]}")
    return 0


@policies.command()
@with_trust
def show(
    identity: Annotated[str, typer.Argument(metavar="ID", help="The policy's id, such as AML-NET-001.")],
    policy: options.Policies = None,
    data: options.GivenData = None,
    profile: options.Profile = None,
    format_: options.PlainFormat = "text",
    config: options.Config = None,
    *,
    trust: Mapping[str, object],
) -> int:
    """Show what a policy says about itself, and the parameters that it judges with here."""
    require_plain(format_)
    settings = settings_of({"profile": profile, **trust}, config)
    bundle = bundle_of(policy or (), settings, data or ())
    known = {entry.id.upper(): entry for entry in bundle.policies}
    found = known.get(identity.upper())
    if found is None:
        raise UsageError(f"no policy has the id `{identity}`{nearest(identity, known)}")
    parameters = with_profile(bundle, settings.profile, settings.parameters)
    (values,) = parameters_of(bundle.only([found]), parameters)
    if format_ == "json":
        typer.echo(orjson.dumps({**described(found), "values": values}, option=orjson.OPT_INDENT_2))
    else:
        typer.echo("\n".join(_page(found, values)))
    return 0


def _print_profiles(profiles: list[Profile], format_: str) -> None:
    if format_ == "json":
        typer.echo(orjson.dumps([asdict(profile) for profile in profiles], option=orjson.OPT_INDENT_2))
        return
    for profile in profiles:
        typer.echo(f"{profile.name:12} {profile.title}".rstrip())
    typer.echo("1 profile" if len(profiles) == 1 else f"{len(profiles)} profiles")


def described(policy: Policy) -> JsonObject:
    """The header of a policy with its area, language and file, as JSON."""
    header: JsonObject = policy.header.model_dump(mode="json")
    twin = policy.language == "rego" and policy.python is not None
    return {**header, "area": policy.area, "language": policy.language, "twin": twin, "file": policy.file}


def _judged_by(bundle: Bundle) -> dict[str, tuple[str, str]]:
    from policyeng.engines import embedded

    judged_by = {policy.id: ("python", "") for policy in bundle.policies}
    judged_by |= {policy.id: (form, reason) for policy, form, reason in embedded.form_of(bundle)}
    return judged_by


def _json(value: object) -> str:
    return orjson.dumps(value).decode()


def _engine_fields(judged_by: dict[str, tuple[str, str]], policy: Policy) -> JsonObject:
    if policy.id not in judged_by:
        return {}
    form, reason = judged_by[policy.id]
    return {"engine": form, "engineReason": reason}


def _page(policy: Policy, values: JsonObject) -> Iterator[str]:
    header = policy.header
    yield f"{header.id}  {header.title}"
    yield f"severity {header.severity} · {policy.language} · {policy.file} · since {header.since or 'unknown'}"
    if header.description:
        yield f"\n{header.description.strip()}"
    yield "\nJudges"
    for judged in header.judges:
        narrowed = "; ".join(
            f"{pointer} is {' or '.join(map(str, values))}" for pointer, values in judged.where.items()
        )
        yield f"  {judged.type}{f' where {narrowed}' if narrowed else ''}"
    yield "\nInspects, and what absence means"
    for pointer in header.inspects:
        yield f"  {pointer}: {header.absent(pointer).replace('_', ' ')}"
    if header.parameters:
        yield "\nParameters"
        for name, schema in header.parameters.items():
            default = f"(default {_json(schema['default'])})" if values[name] != schema["default"] else ""
            words = (f"  {name} = {_json(values[name])}", schema.get("description", ""), default)
            yield "  ".join(filter(None, words))
    if header.remediation:
        yield f"\nHow to mend it\n  {header.remediation.text}"
    yield f"\nSource: {header.source}"
    for framework, controls in header.controls.items():
        yield f"Controls: {framework} {', '.join(controls)}"
    if not header.exemptable:
        yield "Takes no exemptions."
