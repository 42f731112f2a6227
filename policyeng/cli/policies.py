"""`policyeng policies`: list, show and create policies."""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated

import orjson
import typer
from msgspec.structs import asdict, replace

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.files import files_of
from policyeng.bundle.manifest import MANIFEST, Manifest, manifest_of
from policyeng.bundle.parameters import parameters_of, require_fitting, spread_parameters
from policyeng.bundle.policy_selection import Profile, profiles_of, with_profile
from policyeng.bundle.scaffold import Language, Scaffold, Subject, next_id, split_name, title_of
from policyeng.bundle.signature_policy import SIGNATURES
from policyeng.bundle.switches import unset_switches
from policyeng.cli import options
from policyeng.cli.commands import Command, Group
from policyeng.cli.console import detect_terminal, print_form, print_line
from policyeng.cli.context import find_known, plain_format
from policyeng.cli.evaluation_options import PolicyOptions, SelectionOptions
from policyeng.cli.files import write
from policyeng.cli.option_groups import with_options
from policyeng.cli.options import complete_ids
from policyeng.cli.schema import SCHEMA_DIRECTORY, write_schemas
from policyeng.context import bundle_of
from policyeng.errors import BundleError, UsageError, suggest_nearest
from policyeng.facts.catalogue import built_in_root
from policyeng.models import JsonObject, Severity
from policyeng.parsing.yaml_writer import flow
from policyeng.report.escaping import visible
from policyeng.report.layout import wrap
from policyeng.report.phrases import count

if TYPE_CHECKING:
    from policyeng.policy_docs import PolicyPage

#: The preferred baseline if several have the evaluated type.
_USUAL = "compute_cluster"
_COMPUTES = "Microsoft.MachineLearningServices/workspaces/computes"
#: The line with the id in a header, in Rego or Python.
_ID_LINES = re.compile(rb"""^(?:\#[ \t]+id:|[ \t]+id=)[ \t]*["']?([A-Z][A-Z0-9-]*)\b""", re.MULTILINE)
_ARM_TYPE = re.compile(r"[A-Za-z0-9.]+(/[A-Za-z0-9]+)+")
#: The list of roots in a manifest: its start and its entries.
_ROOTS = re.compile(r'("roots"\s*+:\s*+\[)([^\[\]]*+)(?=\])')
_VERSION = re.compile(r"[0-9]+(\.[0-9]+)*")
_LANGUAGES: Mapping[str, Language] = {"rego": "rego", "python": "python"}
_SUBJECTS = {
    "workload": Subject(
        "workload",
        "baseline: online_deployment",
        ("tags", "x"),
        "patch: {tags: {x: VALUE}}",
        ("/purpose", "realtime-inference"),
    ),
    "approval": Subject(
        "approval",
        "judged: A-1",
        ("series",),
        "approvals: [{id: A-1, scope: /subscriptions/s, series: VALUE, status: granted}]",
        ("/status", "granted"),
    ),
}

Place = Annotated[
    str, typer.Argument(metavar="AREA/NAME", help="Directory of the policy, such as network/private_endpoints.")
]
InLanguage = Annotated[str, typer.Option(metavar="LANGUAGE", help="Policy language: rego, python.")]
Identity = Annotated[str, typer.Option("--id", metavar="ID", help="Policy id. Default: the next free id of the area.")]
Title = Annotated[
    str, typer.Option(metavar="TITLE", help="Policy title: the compliant state. Default: derived from the name.")
]
OfSeverity = Annotated[str, typer.Option(metavar="SEVERITY", help=f"Severity of failures: {', '.join(Severity)}.")]
Judges = Annotated[
    str,
    typer.Option(
        metavar="TYPE",
        help="What the policy evaluates: an ARM type, workload or approval.",
        show_default="workspace computes",
    ),
]
Directory = Annotated[
    Path | None,
    typer.Option(
        "--policy",
        metavar="DIR",
        help="Policy directory. Default: the current directory if it contains policies, otherwise `policies`.",
    ),
]


def new(
    path: Place,
    language: InLanguage = "rego",
    identity: Identity = "",
    title: Title = "",
    severity: OfSeverity = Severity.MEDIUM.value,
    judges: Judges = _COMPUTES,
    directory: Directory = None,
) -> int:
    """Create a policy from a template: a header with every field, an empty rule and failing test cases.

    Examples:
      policyeng policies new network/private_endpoints
      policyeng policies new acme/owner_tag --language python --severity low --policy my-policies
    """
    area, name = split_name(path)
    root = directory or _default_directory()
    tree = _tree(root)
    manifest = manifest_of(tree, root)
    subject, lacking = _subject(judges, root)
    policy = Scaffold(
        area=area,
        name=name,
        language=_LANGUAGES[find_known(language, _LANGUAGES, "language")],
        id=_choose_id(tree, area, identity, root),
        title=_title(title.strip()) or title_of(name),
        severity=find_known(severity, Severity, "severity"),
        subject=subject,
        since=manifest.revision if _VERSION.fullmatch(manifest.revision) else "",
        schema=_schema_from(root),
    )
    _write(root, f"{area}/{name}", policy.files())
    if policy.schema:
        for written in write_schemas(SCHEMA_DIRECTORY, ("cases",)):
            print_line(f"wrote {written}")
    notes = [*_add_root(root, manifest, area, name), *lacking]
    if (root / SIGNATURES).is_file():
        notes.append("the directory is signed; sign it again")
    _print_next_steps(root, policy.id, notes)
    return 0


def _schema_from(root: Path) -> str:
    """Return the path from the cases of a policy to their schema below the current directory; empty without one."""
    below, here = root.resolve(), Path.cwd()
    if _is_built_in(root) or not below.is_relative_to(here):
        return ""
    return f"{'../' * (len(below.relative_to(here).parts) + 2)}{SCHEMA_DIRECTORY}/cases.schema.json"


def _title(given: str) -> str:
    if not given.isprintable():
        what = f"the title `{given}` contains a line break or another non-printable character"
        raise UsageError(what, remedy="use a single line")
    return given


def _default_directory() -> Path:
    """Return the current directory if it is a bundle or contains policies, otherwise `policies` in it."""
    here = Path()
    rules = (path for path in (*here.glob("*/*/*.rego"), *here.glob("*/*/*.py")) if path.is_file())
    own = (path for path in rules if path.stem == path.parent.name and _ID_LINES.search(path.read_bytes()))
    return here if (here / MANIFEST).is_file() or any(own) else Path("policies")


def _tree(root: Path) -> Mapping[PurePosixPath, bytes]:
    if root.exists() and not root.is_dir():
        raise UsageError("not a directory", place=(str(root),), remedy="pass the policy directory")
    return files_of(root) if root.exists() else {}


def _choose_id(tree: Mapping[PurePosixPath, bytes], area: str, wanted: str, root: Path) -> str:
    """Return the requested id, or the next free one of the area. Headers are read as text, so no policy is run."""
    places = {
        found[1].decode(): path
        for path, content in sorted(tree.items())
        if path.suffix in (".rego", ".py")
        for found in _ID_LINES.finditer(content)
    }
    if wanted in places:
        remedy = "choose another id, or remove `--id` to use the next free one"
        raise UsageError(f"the id `{wanted}` is already in use", place=(str(root / places[wanted]),), remedy=remedy)
    in_area = {identity for identity, path in places.items() if path.parts[0] == area}
    return wanted or next_id(area, in_area, places.keys() - in_area, root.resolve().name)


def _subject(judges: str, root: Path) -> tuple[Subject, list[str]]:
    """Return what the policy evaluates, from a baseline of its type, and a note if there is no baseline."""
    from policyeng.bundle.cases import Baselines, built_in_baselines

    baselines = Baselines.read(built_in_baselines(), root / "baselines")
    if judges.lower() in _SUBJECTS:
        return _SUBJECTS[judges.lower()], []
    stems: dict[str, str] = {}
    for stem, resource in sorted(baselines.resources.items(), key=lambda entry: (entry[0] != _USUAL, entry[0])):
        stems.setdefault(str(resource.get("type", "")), stem)
    for type_, stem in stems.items():
        if type_.lower() == judges.lower():
            usual = ("/properties/computeType", "AmlCompute") if type_ == _COMPUTES else Subject.where
            return Subject(type_, f"baseline: {flow(stem)}", where=usual), []
    if not _ARM_TYPE.fullmatch(judges):
        remedy = f"use an ARM type such as `{_COMPUTES}`, or workload or approval"
        raise UsageError(
            f"`{judges}` is not a resource type{suggest_nearest(judges, [*stems, *_SUBJECTS])}", remedy=remedy
        )
    provider, _, kind = judges.partition("/")
    close = suggest_nearest(judges, [type_ for type_ in stems if type_.lower().startswith(f"{provider.lower()}/")])
    stem = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind.rpartition("/")[2]).lower()
    place = (built_in_baselines() if _is_built_in(root) else root / "baselines") / f"{stem}.json"
    lacking = f"no baseline has the type `{judges}`{close}; for the test cases, add a compliant one to {place}"
    return Subject(judges, f"baseline: {stem}"), [lacking]


def _write(root: Path, folder: str, files: Mapping[str, str]) -> None:
    try:
        place = root / folder
        if place.exists() and (not place.is_dir() or any(place.iterdir())):
            raise UsageError("the directory already exists", place=(str(place),), remedy="choose another name")
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"cannot write the policy: {reason}", place=(str(root / folder),)) from error
    for name, text in files.items():
        write(root / name, text, "policy", private=False)
        print_line(f"wrote {root / name}")


def _add_root(root: Path, manifest: Manifest, area: str, name: str) -> Iterator[str]:
    """Add the area to the roots of the manifest if they do not cover it, since OPA would reject the bundle."""
    roots = manifest.roots
    path = f"{area}/{name}"
    if roots is None or any(not own or f"{path}/".startswith(f"{own.strip('/')}/") for own in roots):
        return
    added = path if any(own.strip("/").startswith(f"{area}/") for own in roots) else area
    file = root / MANIFEST
    text = file.read_text(encoding="utf-8")
    widened = _ROOTS.sub(lambda found: found[1] + _with_entry(found[2], added), text)
    try:
        is_unchanged = manifest_of({MANIFEST: widened.encode()}, root) == replace(manifest, roots=(*roots, added))
    except BundleError:
        is_unchanged = False
    if is_unchanged:
        write(file, widened, "manifest", private=False)
        yield f"added `{added}` to the roots in {file}"
    else:
        yield f"add `{added}` to the `roots` in {file}; OPA rejects files outside of the roots"


def _with_entry(entries: str, added: str) -> str:
    """Add an entry to the text between the brackets of a list, formatted like the last entry."""
    kept = entries.rstrip()
    before, _, last = kept.rpartition(",")
    space = last[: len(last) - len(last.lstrip())] if before else ""
    separator = f",{space or ' '}" if kept else ""
    return f'{kept}{separator}"{added}"{entries[len(kept) :]}'


def _print_next_steps(root: Path, identity: str, notes: Iterable[str]) -> None:
    for note in notes:
        print_line(note)
    command = ["policyeng", "test", *([] if _is_built_in(root) else ["--policy", str(root)]), "--select", identity]
    print_line(f"{identity} is a template whose test cases fail; complete the header, the rule and the cases, then run")
    print_line(f"  {shlex.join(command)}")


def _is_built_in(root: Path) -> bool:
    return root.resolve() == built_in_root().resolve()


policies = typer.Typer(
    cls=Group, help="List policies, show a policy, or create one.", no_args_is_help=True, add_completion=False
)
policies.command(cls=Command)(new)


@dataclass(kw_only=True, repr=False, eq=False)
class ListOptions(SelectionOptions):
    """The options of `policyeng policies list`."""

    profiles: Annotated[bool, typer.Option("--profiles", help="List the profiles instead.")] = False
    format_: options.PageFormat = "text"
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Directory for the index and policy pages, with --format markdown."
        ),
    ] = None


@policies.command(name="list", cls=Command)
@with_options(ListOptions)
def list_policies(args: ListOptions) -> int:
    """List policies with id, severity, language and title, or profiles; optionally write a Markdown page per policy."""
    format_ = plain_format(args.format_, *(() if args.profiles else ("markdown",)))
    if args.output is not None and format_ != "markdown":
        raise UsageError("`--output` requires Markdown", remedy="add `--format markdown`")
    if args.profiles and (args.select or args.ignore):
        raise UsageError("`--profiles` does not go with `--select` or `--ignore`", remedy="remove one of them")
    settings = args.settings()
    bundle = args.bundle(settings)
    if args.policies:
        from policyeng.engines.embedded import compile_rego  # as for `check`, and most lists are of the built-in ones

        compile_rego(bundle)  # what cannot be evaluated must not be listed as if it could
    if args.profiles:
        _print_profiles(profiles_of(bundle), format_)
        return 0
    if format_ == "markdown":
        _print_markdown(bundle, args.repeated, args.output)
        return 0
    if format_ == "json":
        entries = [described(entry) for entry in bundle.policies]
        typer.echo(orjson.dumps(entries, option=orjson.OPT_INDENT_2))
        return 0
    given = spread_parameters(bundle, settings.parameters, settings.origins.get("parameters", ""))
    values = ({**entry.header.defaults, **given.get(entry.id, {})} for entry in bundle.policies)
    _print_list(bundle, list(map(unset_switches, bundle.policies, repeat(bundle), values)))
    return 0


@dataclass(kw_only=True, repr=False, eq=False)
class ShowOptions(PolicyOptions):
    """The options of `policyeng policies show`."""

    identity: Annotated[
        str, typer.Argument(metavar="ID", help="Policy id, such as AML-NET-001.", autocompletion=complete_ids)
    ]
    profile: options.Profile = None
    format_: options.PageFormat = "text"


@policies.command(cls=Command)
@with_options(ShowOptions)
def show(args: ShowOptions) -> int:
    """Show a policy: rationale, what it evaluates, handling of absent fields, parameters, test cases and fix."""
    format_ = plain_format(args.format_, "markdown")
    settings = args.settings(profile=args.profile)
    bundle = bundle_of(args.policies, settings, args.given_data)
    known = {entry.id.upper(): entry for entry in bundle.policies}
    found = known.get(args.identity.upper())
    if found is None:
        remedy = "" if args.policy else "only the built-in policies were searched; add `--policy PATH` for others"
        raise UsageError(f"unknown policy `{args.identity}`{suggest_nearest(args.identity, known)}", remedy=remedy)
    alone = bundle.only([found])
    origin = settings.origins.get("parameters", "")
    given = spread_parameters(bundle, settings.parameters, origin)
    require_fitting(alone, given, origin)
    (values,) = parameters_of(alone, with_profile(bundle, settings.profile, given))
    if format_ == "json":
        typer.echo(orjson.dumps({**described(found), "values": values}, option=orjson.OPT_INDENT_2))
        return 0
    from policyeng.policy_docs import markdown, terminal

    page = dataclasses.replace(_pages(alone, args.repeated)[0], values=values)
    print_form((markdown if format_ == "markdown" else terminal).render, page, format_)
    return 0


@dataclass(kw_only=True, repr=False, eq=False)
class ExportOptions(PolicyOptions):
    """The options of `policyeng policies export`."""

    identities: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID]...", help="Policy ids. Default: all.", autocompletion=complete_ids),
    ] = None
    to: Annotated[str, typer.Option("--to", metavar="FORM", help="The form: azure-policy.")] = "azure-policy"


@policies.command(cls=Command)
@with_options(ExportOptions)
def export(args: ExportOptions) -> int:
    """Print policies of one resource and one field as definitions of Azure Policy; each is tested to decide the same.

    What cannot be a definition is named with the reason on standard error. Exit code 2 if a requested policy is none.

    Examples:
      policyeng policies export AML-NET-001 > definition.json
    """
    from policyeng.testing.azure_policy_export import ExportRefusedError, export_policy

    find_known(args.to, ("azure-policy",), "form")
    bundle = bundle_of(args.policies, args.settings(), args.given_data)
    by_id = {entry.id.upper(): entry for entry in bundle.policies}
    for identity in args.identities or ():
        if identity.upper() not in by_id:
            raise UsageError(f"unknown policy `{identity}`{suggest_nearest(identity, by_id)}")
    definitions = []
    wanted = [by_id[identity.upper()] for identity in args.identities or ()] or list(bundle.policies)
    for entry in wanted:
        try:
            definitions.append(export_policy(bundle, entry))
        except ExportRefusedError as error:
            print_line(f"policyeng: {entry.id} is not exported: {error}", error=True)
    if definitions:
        document = definitions[0] if len(wanted) == 1 else definitions
        typer.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2))
    return 2 if args.identities and len(definitions) < len(wanted) else 0


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
    """Yield one wrapped line per policy with the names of the parameters that a profile sets."""
    names = {visible(identity): visible(", ".join(chosen)) for identity, chosen in profile.parameters.items()}
    column = max(map(len, names), default=0)
    for identity in sorted(names):
        for number, part in enumerate(wrap(names[identity], max(20, detect_terminal()[1] - column - 4))):
            yield f"  {'' if number else identity:<{column}}  {part}"


def described(policy: Policy) -> JsonObject:
    """Return the header of a policy with its area, language and file, as JSON."""
    header: JsonObject = policy.header.model_dump(mode="json")
    twin = policy.language == "rego" and policy.python is not None
    return {**header, "area": policy.area, "language": policy.language, "twin": twin, "file": policy.file}


def _print_list(bundle: Bundle, unset: Sequence[Sequence[str]]) -> None:
    """Print one line per policy, in columns; `unset` has the parameters to set before each has findings."""
    rows = [(entry.id, entry.header.severity.value, entry.language) for entry in bundle.policies]
    widths = [max(map(len, column), default=0) for column in zip(*rows, strict=True)]
    for row, entry, names in zip(rows, bundle.policies, unset, strict=True):
        cells = [f"{cell:{width}}" for cell, width in zip(row, widths, strict=True) if width]
        off = f" (not configured: set {', '.join(f'`{name}`' for name in names)})" if names else ""
        typer.echo(visible("  ".join((*cells, f"{entry.header.title}{off}"))))
    number = count(len(bundle.policies), "policy")
    typer.echo(f"{number}, revision {bundle.revision or 'none'}, digest {bundle.digest[:12]}")


def _print_markdown(bundle: Bundle, given: Sequence[str], output: Path | None) -> None:
    """Print the index, or write the index and the pages to a directory."""
    from policyeng.cli.pages_directory import linked, write_pages
    from policyeng.policy_docs import directory, index

    pages = _pages(bundle, given)
    if output is None:
        print_line(index(pages, bundle.name, bundle.revision).rstrip("\n"))
        return
    pages = linked(pages, bundle.roots, output)
    typer.echo(write_pages(output, directory(pages, bundle.name, bundle.revision)))


def _pages(bundle: Bundle, given: Sequence[str]) -> list[PolicyPage]:
    from policyeng.bundle.cases import read_cases
    from policyeng.frameworks import frameworks_of, tested_controls
    from policyeng.policy_docs import PolicyPage, cited
    from policyeng.testing.observed_reads import UNOBSERVED, observe

    tested = tested_controls(frameworks_of(bundle))

    def page(policy: Policy) -> PolicyPage:
        # Python of third-party policies is not run just to describe them.
        observed = observe(bundle, policy) if policy.rules or not given else UNOBSERVED
        controls = tested.get(policy.id, {})
        return PolicyPage(
            policy,
            read_cases(policy),
            given=given,
            cited=cited(policy, bundle),
            observed=observed,
            controls=controls,
        )

    return list(map(page, bundle.policies))
