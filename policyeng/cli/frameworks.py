"""`policyeng frameworks`: list the frameworks, and show the controls of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import orjson
import typer

from policyeng.bundle import Bundle
from policyeng.cli import options
from policyeng.cli.commands import Command, Group
from policyeng.cli.console import print_form, print_line
from policyeng.cli.context import plain_format
from policyeng.cli.evaluation_options import PolicyOptions
from policyeng.cli.option_groups import with_options
from policyeng.context import bundle_of
from policyeng.errors import UsageError
from policyeng.frameworks import Control, Framework, framework_of, frameworks_of
from policyeng.models import ControlMapping, JsonObject, to_bytes
from policyeng.report.escaping import visible
from policyeng.report.layout import BLANK, Line, heading, labelled, place_text, text_form, wrap_paragraph
from policyeng.report.phrases import count

frameworks = typer.Typer(
    cls=Group,
    help="List frameworks, or show the controls of one and the policies that test them.",
    no_args_is_help=True,
    add_completion=False,
)


@dataclass(kw_only=True, repr=False, eq=False)
class FrameworkListOptions(PolicyOptions):
    """The options of `policyeng frameworks list`."""

    format_: options.PageFormat = "text"
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Directory for an index and a page per framework, with --format markdown.",
        ),
    ] = None


@frameworks.command(name="list", cls=Command)
@with_options(FrameworkListOptions)
def list_frameworks(args: FrameworkListOptions) -> int:
    """List the frameworks with the number of their controls; optionally write a Markdown page for each."""
    format_ = plain_format(args.format_, "markdown")
    if args.output is not None and format_ != "markdown":
        raise UsageError("`--output` requires Markdown", remedy="add `--format markdown`")
    bundle = bundle_of(args.policies, args.settings(), args.given_data)
    found, known = frameworks_of(bundle), _titles(bundle)
    if format_ == "json":
        typer.echo(orjson.dumps([_summary(one, known) for one in found], option=orjson.OPT_INDENT_2))
        return 0
    if format_ == "markdown":
        from policyeng.cli.pages_directory import write_pages
        from policyeng.policy_docs.frameworks import FRAMEWORK_MARK, framework_directory, framework_index

        if args.output is None:
            print_line(framework_index(found, known).rstrip("\n"))
        else:
            typer.echo(write_pages(args.output, framework_directory(found, known), FRAMEWORK_MARK))
        return 0
    width = max((len(one.id) for one in found), default=0)
    for one in found:
        numbers = _summary(one, known)
        tested = f"{numbers['tested']:>3} of {numbers['controls']:>3} controls tested"
        typer.echo(visible(f"{one.id:<{width}}  {tested}  {one.title}, version {one.version}"))
    typer.echo(count(len(found), "framework"))
    return 0


@dataclass(kw_only=True, repr=False, eq=False)
class FrameworkShowOptions(PolicyOptions):
    """The options of `policyeng frameworks show`."""

    name: Annotated[
        str, typer.Argument(metavar="NAME|FILE", help="Framework, such as mcsb-v1, or a JSON or YAML file.")
    ]
    control: Annotated[str | None, typer.Argument(metavar="[CONTROL]", help="Control id, such as NS-2.")] = None
    format_: options.PageFormat = "text"


@frameworks.command(cls=Command)
@with_options(FrameworkShowOptions)
def show(args: FrameworkShowOptions) -> int:
    """Show the controls of a framework and the policies that test them, or one control with its mappings."""
    format_ = plain_format(args.format_, *(() if args.control else ("markdown",)))
    bundle = bundle_of(args.policies, args.settings(), args.given_data)
    framework, known = framework_of(bundle, args.name), _titles(bundle)
    control = framework.control(args.control) if args.control else None
    if format_ == "json":
        shown: Framework | Control = control or framework
        typer.echo(to_bytes(shown, orjson.OPT_INDENT_2))
        return 0
    if format_ == "markdown":
        from policyeng.policy_docs.frameworks import framework_page

        print_line(framework_page(framework, known).rstrip("\n"))
        return 0

    def lines(framework: Framework, width: int) -> Iterator[Line]:
        return (
            _control_lines(framework, control, known, width) if control else _framework_lines(framework, known, width)
        )

    print_form(text_form(lines), framework, format_)
    return 0


def _titles(bundle: Bundle) -> dict[str, str]:
    return {policy.id: policy.header.title for policy in bundle.policies}


def _direct(control: Control, known: Mapping[str, str]) -> list[ControlMapping]:
    return [mapping for mapping in control.policies if mapping.is_direct and mapping.id in known]


def _summary(framework: Framework, known: Mapping[str, str]) -> JsonObject:
    controls = framework.controls
    return {
        "id": framework.id,
        "title": framework.title,
        "version": framework.version,
        "preview": framework.preview,
        "controls": len(controls),
        "technical": sum(control.kind == "technical" for control in controls),
        "tested": sum(bool(_direct(control, known)) for control in controls),
        "mappings": sum(mapping.id in known for control in controls for mapping in control.policies),
    }


def _framework_lines(framework: Framework, known: Mapping[str, str], width: int) -> Iterator[Line]:
    yield from heading(visible(f"{framework.id}: {framework.title}, version {framework.version}"))
    yield from labelled("source", visible(framework.source), width, indent=0)
    for domain, controls in framework.by_domain.items():
        yield BLANK
        yield ((visible(domain or "Controls"), "bold"),)
        for control in controls:
            yield from place_text((("  ", ""), (visible(control.id), "bold")), visible(control.title), width, indent=4)
            policies = ", ".join(mapping.id for mapping in _direct(control, known))
            yield from wrap_paragraph(policies or _without_policies(control, known), width, indent=6, style="dim")
    yield BLANK
    yield from wrap_paragraph(visible(framework.disclaimer), width, indent=0, style="dim")


def _without_policies(control: Control, known: Mapping[str, str]) -> str:
    related = any(mapping.id in known for mapping in control.policies)
    return "by hand" if control.kind == "process" or related else "not covered"


def _control_lines(framework: Framework, control: Control, known: Mapping[str, str], width: int) -> Iterator[Line]:
    yield from heading(visible(f"{framework.id}:{control.id}  {control.title}"))
    yield from labelled("domain", visible(control.domain), width, indent=0)
    yield from labelled("kind", control.kind, width, indent=0)
    yield from labelled("by hand", visible(control.guidance), width, indent=0)
    mapped = [mapping for mapping in control.policies if mapping.id in known]
    for title, is_direct in (("Policies that test it", True), ("Related policies, which do not count", False)):
        chosen = [mapping for mapping in mapped if mapping.is_direct is is_direct]
        if chosen:
            yield BLANK
            yield ((title, "bold"),)
        for mapping in chosen:
            yield from place_text((("  ", ""), (mapping.id, "bold")), visible(known[mapping.id]), width, indent=4)
            yield from labelled(mapping.basis, visible(mapping.source), width, indent=4)
            yield from labelled("note", visible(mapping.note), width, indent=4)
    if not mapped:
        yield BLANK
        yield (("No policy maps to it.", ""),)
    yield BLANK
    yield from wrap_paragraph(visible(framework.disclaimer), width, indent=0, style="dim")
