"""`policyeng policies`: what the policies are, and what one of them says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.parameters import parameters_of, require_fitting, spread
from policyeng.bundle.profiles import Profile, profiles_of, with_profile
from policyeng.cli import options
from policyeng.cli.command import Command
from policyeng.cli.loading import plain_format, selected_bundle, settings_of
from policyeng.cli.new_policy import new
from policyeng.cli.printing import look, say
from policyeng.cli.trust import with_trust
from policyeng.errors import UsageError, nearest
from policyeng.in_force import bundle_of
from policyeng.models import JsonObject
from policyeng.report.escapes import visible
from policyeng.report.lines import wrapped
from policyeng.report.wording import count

if TYPE_CHECKING:
    from policyeng.pages import Page

policies = typer.Typer(help="List policies, show one, or begin a new one.", no_args_is_help=True, add_completion=False)
policies.command(cls=Command)(new)


@policies.command(name="list", cls=Command)
@with_trust
def list_policies(
    policy: options.Policies = None,
    data: options.GivenData = None,
    select: options.Select = None,
    ignore: options.Ignore = None,
    profiles: Annotated[bool, typer.Option("--profiles", help="List the profiles that `check` takes instead.")] = False,
    format_: options.PageFormat = "text",
    output: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="With --format markdown: write the index and a page for each policy there."),
    ] = None,
    config: options.Config = None,
    *,
    trust: Mapping[str, object],
) -> int:
    """List the policies (id, severity, language and title), in Markdown with a page for each; or their profiles."""
    format_ = plain_format(format_, *(() if profiles else ("markdown",)))
    if output is not None and format_ != "markdown":
        raise UsageError("only Markdown is written to a directory", remedy="add `--format markdown`")
    if profiles and (select or ignore):
        raise UsageError("profiles belong to all policies", remedy="leave the other options out")
    bundle = selected_bundle(policy, settings_of(trust, config), data, select, ignore)
    if profiles:
        _print_profiles(profiles_of(bundle), format_)
        return 0
    if format_ == "markdown":
        _print_markdown(bundle, _given(policy, data), output)
        return 0
    if format_ == "json":
        entries = [described(entry) for entry in bundle.policies]
        typer.echo(orjson.dumps(entries, option=orjson.OPT_INDENT_2))
        return 0
    _print_list(bundle)
    return 0


@policies.command(cls=Command)
@with_trust
def show(
    identity: Annotated[str, typer.Argument(metavar="ID", help="The policy's id, such as AML-NET-001.")],
    policy: options.Policies = None,
    data: options.GivenData = None,
    profile: options.Profile = None,
    format_: options.PageFormat = "text",
    config: options.Config = None,
    *,
    trust: Mapping[str, object],
) -> int:
    """Show what a policy says about itself: why, what it judges, what absence means, its cases and how to mend it."""
    format_ = plain_format(format_, "markdown")
    settings = settings_of({"profile": profile, **trust}, config)
    bundle = bundle_of(policy or (), settings, data or ())
    known = {entry.id.upper(): entry for entry in bundle.policies}
    found = known.get(identity.upper())
    if found is None:
        raise UsageError(f"no policy has the id `{identity}`{nearest(identity, known)}")
    alone = bundle.only([found])
    origin = settings.origins.get("parameters", "")
    given = spread(bundle, settings.parameters, origin)
    require_fitting(alone, given, origin)
    (values,) = parameters_of(alone, with_profile(bundle, settings.profile, given))
    if format_ == "json":
        typer.echo(orjson.dumps({**described(found), "values": values}, option=orjson.OPT_INDENT_2))
        return 0
    from policyeng.pages import markdown, terminal

    page = replace(_pages(alone, _given(policy, data))[0], values=values)
    if format_ == "markdown":
        say(markdown.render(page).rstrip("\n"))
        return 0
    color, width = look()
    say(terminal.render(page, color=color, width=width).rstrip("\n"))
    return 0


def _print_profiles(profiles: Sequence[Profile], format_: str) -> None:
    if format_ == "json":
        typer.echo(orjson.dumps([asdict(profile) for profile in profiles], option=orjson.OPT_INDENT_2))
        return
    for profile in profiles:
        typer.echo(visible(f"{profile.name:12} {profile.title}".rstrip()))
        for line in _set_by(profile):
            typer.echo(line)
    typer.echo(count(len(profiles), "profile"))


def _set_by(profile: Profile) -> Iterator[str]:
    """What a profile sets: a line for each policy with the names of its parameters, wrapped."""
    names = {visible(identity): visible(", ".join(chosen)) for identity, chosen in profile.parameters.items()}
    column = max(map(len, names), default=0)
    for identity in sorted(names):
        for number, part in enumerate(wrapped(names[identity], max(20, look()[1] - column - 4))):
            yield f"  {'' if number else identity:<{column}}  {part}"


def described(policy: Policy) -> JsonObject:
    """The header of a policy with its area, language and file, as JSON."""
    header: JsonObject = policy.header.model_dump(mode="json")
    twin = policy.language == "rego" and policy.python is not None
    return {**header, "area": policy.area, "language": policy.language, "twin": twin, "file": policy.file}


def _print_list(bundle: Bundle) -> None:
    """Print a line for each policy, in columns as wide as what they hold."""
    rows = [(entry.id, entry.header.severity.value, entry.language) for entry in bundle.policies]
    widths = [max(map(len, column), default=0) for column in zip(*rows, strict=True)]
    for row, entry in zip(rows, bundle.policies, strict=True):
        cells = [f"{cell:{width}}" for cell, width in zip(row, widths, strict=True) if width]
        typer.echo(visible("  ".join((*cells, entry.header.title))))
    number = count(len(bundle.policies), "policy")
    typer.echo(f"{number}, revision {bundle.revision or 'none'}, digest {bundle.digest[:12]}")


def _given(policy: Sequence[Path] | None, given_data: Sequence[str] | None) -> list[str]:
    """The options that a later command needs to find the same policies."""
    return [
        *(part for path in policy or () for part in ("--policy", str(path))),
        *(part for path in given_data or () for part in ("--data", path)),
    ]


def _print_markdown(bundle: Bundle, given: Sequence[str], output: Path | None) -> None:
    """Print the index, or write it and the pages."""
    from policyeng.cli.pages_directory import linked, write_pages
    from policyeng.pages import directory, index

    pages = _pages(bundle, given)
    if output is None:
        say(index(pages, bundle.name, bundle.revision).rstrip("\n"))
        return
    pages = linked(pages, bundle.roots, output)
    typer.echo(write_pages(output, directory(pages, bundle.name, bundle.revision)))


def _pages(bundle: Bundle, given: Sequence[str]) -> list[Page]:
    from policyeng.pages import Page, cited
    from policyeng.verify.cases import read_cases
    from policyeng.verify.observing import UNOBSERVED, observe

    def page(policy: Policy) -> Page:
        # Describing the policies of others runs none of their Python.
        observed = observe(bundle, policy) if policy.rules or not given else UNOBSERVED
        return Page(policy, read_cases(policy), given=given, cited=cited(policy, bundle), observed=observed)

    return list(map(page, bundle.policies))
