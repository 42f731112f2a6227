"""`policyeng policies new`: the folder of a policy, to be filled in."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Annotated

import typer

from policyeng.bundle.manifest import MANIFEST, Manifest, manifest_of
from policyeng.bundle.naming import next_id, parted, title_of
from policyeng.bundle.scaffold import Language, Scaffold, Subject
from policyeng.bundle.tree import built_in_root, files_of
from policyeng.bundle.verification import SIGNATURES
from policyeng.cli.loading import chosen
from policyeng.cli.printing import say
from policyeng.cli.writing import write
from policyeng.errors import BundleError, UsageError, nearest
from policyeng.models import Severity
from policyeng.strict.yaml_lines import flow

#: The baseline that is edited when several have the judged type.
_USUAL = "compute_cluster"
_COMPUTES = "Microsoft.MachineLearningServices/workspaces/computes"
#: Where an id stands in a header: in Rego's, and in Python's.
_ID_LINES = re.compile(rb"""^(?:\#[ \t]+id:|[ \t]+id=)[ \t]*["']?([A-Z][A-Z0-9-]*)\b""", re.MULTILINE)
_ARM_TYPE = re.compile(r"[A-Za-z0-9.]+(/[A-Za-z0-9]+)+")
#: The list of roots: how it begins, and its entries.
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
    str, typer.Argument(metavar="AREA/NAME", help="The folder of the policy, such as network/private_endpoints.")
]
InLanguage = Annotated[str, typer.Option(metavar="LANGUAGE", help="What to write it in: rego, python.")]
Identity = Annotated[str, typer.Option("--id", metavar="ID", help="Its id; else the next that is free in its area.")]
Title = Annotated[str, typer.Option(metavar="TITLE", help="What holds when all is well; else the name in words.")]
OfSeverity = Annotated[
    str, typer.Option(metavar="SEVERITY", help=f"How much a failure matters: {', '.join(Severity)}.")
]
Judges = Annotated[
    str,
    typer.Option(
        metavar="TYPE",
        help="What it judges: an ARM type, workload or approval.",
        show_default="computes of a workspace",
    ),
]
Directory = Annotated[
    Path | None,
    typer.Option(
        "--policy",
        metavar="DIR",
        help="Where policies are; else the current directory if it holds some, else `policies`.",
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
    """Begin a policy: a header with every field, a rule that decides nothing yet, and cases that do not hold.

    Examples:
      policyeng policies new network/private_endpoints
      policyeng policies new acme/owner_tag --language python --severity low --policy my-policies
    """
    area, name = parted(path)
    root = directory or _default_directory()
    tree = _tree(root)
    manifest = manifest_of(tree, root)
    subject, lacking = _subject(judges, root)
    policy = Scaffold(
        area=area,
        name=name,
        language=_LANGUAGES[chosen(language, _LANGUAGES, "language")],
        id=_free_id(tree, area, identity, root),
        title=_title(title.strip()) or title_of(name),
        severity=chosen(severity, Severity, "severity"),
        subject=subject,
        since=manifest.revision if _VERSION.fullmatch(manifest.revision) else "",
    )
    _write(root, f"{area}/{name}", policy.files())
    notes = [*_widened(root, manifest, area, name), *lacking]
    if (root / SIGNATURES).is_file():
        notes.append("the directory is signed: sign it again")
    _say_next(root, policy.id, notes)
    return 0


def _title(given: str) -> str:
    if not given.isprintable():
        what = f"the title `{given}` has a line break or another character that cannot be seen"
        raise UsageError(what, remedy="write it on one line")
    return given


def _default_directory() -> Path:
    """The current directory when it is a bundle or holds policies in folders of their own, else `policies` in it."""
    here = Path()
    rules = (path for path in (*here.glob("*/*/*.rego"), *here.glob("*/*/*.py")) if path.is_file())
    own = (path for path in rules if path.stem == path.parent.name and _ID_LINES.search(path.read_bytes()))
    return here if (here / MANIFEST).is_file() or any(own) else Path("policies")


def _tree(root: Path) -> Mapping[PurePosixPath, bytes]:
    if root.exists() and not root.is_dir():
        raise UsageError("it is no directory", place=(str(root),), remedy="name the directory of the policies")
    return files_of(root) if root.exists() else {}


def _free_id(tree: Mapping[PurePosixPath, bytes], area: str, wanted: str, root: Path) -> str:
    """The id that the user wants, or the next of the area. Headers are looked at as text: nothing is run for a name."""
    places = {
        found[1].decode(): path
        for path, content in sorted(tree.items())
        if path.suffix in (".rego", ".py")
        for found in _ID_LINES.finditer(content)
    }
    if wanted in places:
        remedy = "name another one, or leave `--id` out for the next that is free"
        raise UsageError(f"the id `{wanted}` stands already", place=(str(root / places[wanted]),), remedy=remedy)
    in_area = {identity for identity, path in places.items() if path.parts[0] == area}
    return wanted or next_id(area, in_area, places.keys() - in_area, root.resolve().name)


def _subject(judges: str, root: Path) -> tuple[Subject, list[str]]:
    """What is judged, by a baseline of its type, and what is lacking when there is none."""
    from policyeng.verify.cases import Baselines, built_in_baselines

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
        remedy = f"write an ARM type such as `{_COMPUTES}`, or workload or approval"
        raise UsageError(f"`{judges}` is no type of a resource{nearest(judges, [*stems, *_SUBJECTS])}", remedy=remedy)
    provider, _, kind = judges.partition("/")
    close = nearest(judges, [type_ for type_ in stems if type_.lower().startswith(f"{provider.lower()}/")])
    stem = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind.rpartition("/")[2]).lower()
    place = (built_in_baselines() if _is_built_in(root) else root / "baselines") / f"{stem}.json"
    lacking = f"no baseline is a `{judges}`{close}; for the cases, put a compliant one into {place}"
    return Subject(judges, f"baseline: {stem}"), [lacking]


def _write(root: Path, folder: str, files: Mapping[str, str]) -> None:
    try:
        place = root / folder
        if place.exists() and (not place.is_dir() or any(place.iterdir())):
            raise UsageError("it is there already, and is left as it is", place=(str(place),), remedy="name another")
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"the policy cannot be written: {reason}", place=(str(root / folder),)) from error
    for name, text in files.items():
        write(root / name, text, "policy", private=False)
        say(f"wrote {root / name}")


def _widened(root: Path, manifest: Manifest, area: str, name: str) -> Iterator[str]:
    """Add the area to the roots of the manifest where they leave it out, since OPA would refuse the bundle."""
    roots = manifest.roots
    path = f"{area}/{name}"
    if roots is None or any(not own or f"{path}/".startswith(f"{own.strip('/')}/") for own in roots):
        return
    added = path if any(own.strip("/").startswith(f"{area}/") for own in roots) else area
    file = root / MANIFEST
    text = file.read_text(encoding="utf-8")
    widened = _ROOTS.sub(lambda found: found[1] + _with_entry(found[2], added), text)
    try:
        stands = manifest_of({MANIFEST: widened.encode()}, root) == replace(manifest, roots=(*roots, added))
    except BundleError:
        stands = False
    if stands:
        write(file, widened, "manifest", private=False)
        yield f"added `{added}` to the roots in {file}"
    else:
        yield f"add `{added}` to the `roots` in {file}: they leave it out, and OPA refuses what lies outside"


def _with_entry(entries: str, added: str) -> str:
    """Add an entry to the text between the brackets of a list, laid out as the last one is."""
    kept = entries.rstrip()
    before, _, last = kept.rpartition(",")
    space = last[: len(last) - len(last.lstrip())] if before else ""
    separator = f",{space or ' '}" if kept else ""
    return f'{kept}{separator}"{added}"{entries[len(kept) :]}'


def _say_next(root: Path, identity: str, notes: Iterable[str]) -> None:
    for note in notes:
        say(note)
    command = ["policyeng", "test", *([] if _is_built_in(root) else ["--policy", str(root)]), "--select", identity]
    say(f"{identity} is not written yet, and its cases fail; fill in the header, the rule and the cases, then run")
    say(f"  {shlex.join(command)}")


def _is_built_in(root: Path) -> bool:
    return root.resolve() == built_in_root().resolve()
