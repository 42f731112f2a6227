"""Compile a collection of Rego on our engine, and compare its unit tests, test by test, with those of OPA.

Usage: python -m tools.run_collections DIRECTORY [--opa PROGRAM] [--differences NUMBER]

It fetches nothing: DIRECTORY is a copy of a collection, such as a clone of a repository. Modules that can be loaded
together are one group: a directory in which no package is in two of its folders, or else each of these folders. A
package that a group reads and does not have is taken from elsewhere in the collection. What a module or its tests need
is not built in: functions that a tool adds to Rego are refused by both engines.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from policyeng.bundle.analysis import ModuleAnalysis, analysis_of
from policyeng.bundle.assembling import join_document
from policyeng.bundle.files import DATA_NAMES
from policyeng.bundle.left_out import LeftOutModule
from policyeng.errors import BundleError, EngineError
from policyeng.models import JsonObject
from policyeng.testing.rego_tests import ModuleFile, compile_session, run_unit_tests

OPA = Path(".tools/bin/opa")
#: Folders of tools, and folders for what others maintain, in a copy of a collection.
_HIDDEN = ("node_modules", "vendor")
#: Seconds for one run of OPA.
_LONGEST = 600
#: The members of a test in OPA's output for outcomes other than a pass.
_OUTCOMES = {"fail": "failed", "error": "error", "skip": "skipped"}
#: What differs between two reasons of one kind.
_DETAIL = re.compile(r"`[^`]*`|\"[^\"]*\"|[0-9]+")
_LONGEST_REASON = 90

#: A test: its file, and its name as OPA writes it.
TestName = tuple[str, str]


@dataclass
class Group:
    """Modules that are loaded together, with their paths in the collection."""

    folder: PurePosixPath
    modules: dict[PurePosixPath, str]
    libraries: dict[PurePosixPath, str] = field(default_factory=dict)

    @property
    def texts(self) -> dict[PurePosixPath, str]:
        """Return everything that is loaded."""
        return {**self.modules, **self.libraries}


@dataclass
class Comparison:
    """What the two engines make of groups."""

    modules: int = 0
    left_out: list[LeftOutModule] = field(default_factory=list)
    opa_refused: set[str] = field(default_factory=set)
    same: int = 0
    different: list[str] = field(default_factory=list)
    only_ours: int = 0
    only_opa: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)

    def add(self, other: Comparison) -> None:
        """Add those of another group."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) | value if isinstance(value, set) else getattr(self, name) + value)


def find_modules(root: Path) -> dict[PurePosixPath, str]:
    """Return the Rego modules below a directory that are UTF-8, by path."""
    modules = {}
    for path in sorted(root.rglob("*.rego")):
        relative = PurePosixPath(path.relative_to(root).as_posix())
        if path.is_file() and not any(part.startswith(".") or part in _HIDDEN for part in relative.parts[:-1]):
            with suppress(UnicodeDecodeError):
                modules[relative] = path.read_text(encoding="utf-8").replace("\r\n", "\n")
    return modules


def analyses_of(modules: Mapping[PurePosixPath, str]) -> dict[PurePosixPath, ModuleAnalysis]:
    """Return the analyses of the modules that parse."""
    analyses = {}
    for path, text in modules.items():
        with suppress(BundleError):
            analyses[path] = analysis_of(text, None, str(path))
    return analyses


def find_groups(
    folder: PurePosixPath, modules: Mapping[PurePosixPath, str], analyses: Mapping[PurePosixPath, ModuleAnalysis]
) -> Iterator[Group]:
    """Yield the groups of a folder of the collection."""
    below: dict[str, dict[PurePosixPath, str]] = {}
    own: dict[PurePosixPath, str] = {}
    packages: dict[str, set[str]] = {}
    for path, text in modules.items():
        inner = path.relative_to(folder)
        child = inner.parts[0] if len(inner.parts) > 1 else ""
        (below.setdefault(child, {}) if child else own)[path] = text
        if path in analyses:
            packages.setdefault(analyses[path].package, set()).add(child)
    if below and any(len(children) > 1 for children in packages.values()):
        for child, inside in sorted(below.items()):
            yield from find_groups(folder / child, inside, analyses)
        if own:
            yield Group(folder, own)
    elif modules:
        yield Group(folder, dict(modules))


def add_libraries(
    group: Group, modules: Mapping[PurePosixPath, str], analyses: Mapping[PurePosixPath, ModuleAnalysis]
) -> None:
    """Add to a group the modules of packages that it reads, if exactly one folder of the collection has the package."""
    homes: dict[str, set[PurePosixPath]] = {}
    for path, analysis in analyses.items():
        homes.setdefault(analysis.package, set()).add(path.parent)
    waiting = list(group.modules)
    loaded = {analyses[path].package for path in waiting if path in analyses}
    while waiting:
        path = waiting.pop()
        for read in analyses[path].reads if path in analyses else ():
            parts = read.split(".")
            names = [".".join(parts[1:end]) for end in range(2, len(parts) + 1)] if parts[0] == "data" else []
            for package in names:
                if package not in loaded and len(homes.get(package, ())) == 1:
                    loaded.add(package)
                    members = [other for other in modules if other in analyses and analyses[other].package == package]
                    group.libraries |= {other: modules[other] for other in members}
                    waiting += members


def data_of(root: Path, folder: PurePosixPath) -> JsonObject:
    """Return the data documents of a group, as OPA joins them."""
    data: JsonObject = {}
    top = root / folder
    for path in sorted(top.rglob("data.*")):
        if path.name in DATA_NAMES:
            with suppress(BundleError):  # OPA refuses it, too
                join_document(data, PurePosixPath(path.relative_to(top).as_posix()), path.read_bytes(), top)
    return data


def run_ours(group: Group, data: JsonObject) -> tuple[dict[TestName, str], tuple[LeftOutModule, ...]]:
    """Return the outcomes of the tests of a group on our engine, and the modules that are refused."""
    files = []
    for path, text in group.texts.items():
        is_test = path.name.endswith("_test.rego")
        kinds = {"is_foreign": True, "is_lenient": True}
        files.append(ModuleFile(str(path), str(path), text, None, path in group.modules, is_test, **kinds))
    session = compile_session(files, data, lambda _: None, name=str(group.folder))
    refused = {module.path for module in session.left_out}
    session.rules = [rule for rule in session.rules if rule.file not in refused]
    tests = run_unit_tests(session)
    outcomes: dict[TestName, str] = {
        (test.file, f"{test.package}.{test.name}"): test.outcome for test in tests if test.file not in refused
    }
    return outcomes, session.left_out


def run_opa(opa: Path, group: Group, data: JsonObject) -> tuple[dict[TestName, str], set[str]]:
    """Return the outcomes of the tests of a group in OPA, and the modules that it refuses."""
    refused: set[str] = set()
    flags = ["--v0-compatible"] if any(analysis.rego_v0 for analysis in analyses_of(group.texts).values()) else []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, text in group.texts.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        (folder / "data.json").write_text(json.dumps(data), encoding="utf-8")
        while len(refused) < len(group.texts):
            faults = _faulty(_run(folder, opa, "check", "--format", "json", "--max-errors", "1000", *flags, "."))
            faults &= {str(path) for path in group.texts} - refused
            if not faults:
                break
            for fault in faults:
                (folder / fault).unlink()
            refused |= faults
        printed = _run(folder, opa, "test", "--format", "json", *flags, ".").stdout
    try:
        tests = json.loads(printed or "[]")
    except ValueError:
        tests = []
    own = {str(path) for path in group.modules}
    return {
        (file, f"{test['package']}.{test['name']}"): next(
            (outcome for member, outcome in _OUTCOMES.items() if test.get(member)), "passed"
        )
        for test in tests
        if (file := _relative(test["location"]["file"])) in own
    }, refused


def _run(folder: Path, opa: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    words = [str(opa.absolute()), *arguments]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=_LONGEST)


def _faulty(ran: subprocess.CompletedProcess[str]) -> set[str]:
    """Return the files in the errors of `opa check`."""
    try:
        errors = json.loads(ran.stdout or ran.stderr or "{}").get("errors") or []
    except ValueError:
        return set()
    return {_relative((error.get("location") or {}).get("file", "")) for error in errors}


def _relative(file: str) -> str:
    return file.removeprefix("./")


def compare(root: Path, group: Group, opa: Path | None) -> Comparison:
    """Compile a group, and compare its tests."""
    data = data_of(root, group.folder)
    comparison = Comparison(modules=len(group.modules))
    try:
        ours, left_out = run_ours(group, data)
    except EngineError as error:
        comparison.different.append(f"{group.folder}: {error}")
        return comparison
    own = {str(path) for path in group.modules}
    comparison.left_out = [module for module in left_out if module.path in own]
    comparison.outcomes.update(ours.values())
    if opa is None:
        return comparison
    theirs, refused = run_opa(opa, group, data)
    comparison.opa_refused = {f"{group.folder}: {file}" for file in refused & own}
    comparison.only_ours, comparison.only_opa = len(ours.keys() - theirs), len(theirs.keys() - ours)
    for name in sorted(ours.keys() & theirs):
        if ours[name] == theirs[name]:
            comparison.same += 1
        else:
            comparison.different.append(f"{name[0]}: {name[1]}: ours {ours[name]}, OPA {theirs[name]}")
    return comparison


def describe(comparison: Comparison, groups: int, differences: int, *, has_opa: bool) -> Iterator[str]:
    """Yield the lines of the report."""
    dependents = [module for module in comparison.left_out if "it depends on" in module.reason]
    direct = [module for module in comparison.left_out if module not in dependents]
    rows = {
        "groups": groups,
        "modules": comparison.modules,
        "compiled": comparison.modules - len(comparison.left_out),
        "refused": len(direct),
        "left out with them": len(dependents),
    }
    if has_opa:
        rows |= {
            "refused by OPA": len(comparison.opa_refused),
            "tests same": comparison.same,
            "tests different": len(comparison.different),
            "tests in ours alone": comparison.only_ours,
            "tests in OPA alone": comparison.only_opa,
        }
    rows |= {f"tests {outcome}": number for outcome, number in sorted(comparison.outcomes.items())}
    yield from (f"{name:<20} {number:>7}" for name, number in rows.items())
    reasons = Counter(map(_kind, direct))
    if reasons:
        yield "\nreasons of what is refused:"
        yield from (f"{number:>7}  {reason}" for reason, number in reasons.most_common())
    if comparison.different:
        yield f"\nfirst of {len(comparison.different)} differences:"
        yield from (f"  {line}" for line in comparison.different[:differences])


def _kind(module: LeftOutModule) -> str:
    """Return a reason without what is of the module alone."""
    reason = module.reason.removeprefix("the module cannot be compiled: ")
    message = re.sub(r"^\S*:[0-9]+:[0-9]+: ", "", reason)
    return _DETAIL.sub("...", message)[:_LONGEST_REASON]


def main(arguments: Sequence[str]) -> int:
    """Compare a collection; return 1 for differences."""
    parser = argparse.ArgumentParser(prog="python -m tools.run_collections", description=__doc__.partition("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--opa", type=Path, default=OPA, help=f"the program; default {OPA}, without it only ours runs")
    parser.add_argument("--differences", type=int, default=10, help="how many differences are listed")
    options = parser.parse_args(arguments)
    root: Path = options.directory
    if not root.is_dir():
        parser.error(f"{root} is not a directory")
    modules = find_modules(root)
    if not modules:
        parser.error(f"{root} has no Rego modules")
    analyses = analyses_of(modules)
    opa: Path | None = options.opa if options.opa.is_file() else None
    total = Comparison()
    groups = list(find_groups(PurePosixPath(), modules, analyses))
    for group in groups:
        add_libraries(group, modules, analyses)
        total.add(compare(root, group, opa))
    print("\n".join(describe(total, len(groups), options.differences, has_opa=opa is not None)))
    return int(bool(total.different))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
