"""The page `docs/conformance.md`."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from string import Template

from conformance.verdicts import Outcome, Verdict

_KINDS: tuple[Verdict, ...] = ("passed", "failed", "unsupported", "refused", "silent")
TEMPLATE = Path(__file__).with_name("page.md")
_LANGUAGE = {
    "keywordrefs": "keywords as names",
    "logic_operators": "`and` and `or` between conditions",
    "negation": "`not { ... }`",
    "stringinterpolation": 'templates (`$"..."`)',
}


def page(found: Sequence[Outcome], opa: str, engine: str) -> str:
    """The page for the outcomes of a run; the same outcomes give the same page."""
    ways = {way: [outcome for outcome in found if outcome.way == way] for way in ("product", "interpreter")}
    folders = sorted({outcome.folder for outcome in found})
    tables = [
        _totals(ways["product"], ways["interpreter"]),
        "## By folder\n\n" + _by_folder(folders, ways["product"], ways["interpreter"]),
        "## Cases that fail\n\n" + _listed(found, "failed"),
        "## Builtins that are missing or refused\n\n" + _missing(ways["product"]),
        "## Modules that are refused\n\n" + _refused(ways["product"]),
    ]
    template = Template(TEMPLATE.read_text(encoding="utf-8"))
    return template.substitute(
        opa=opa,
        engine=engine,
        cases=len(ways["product"]),
        folders=len(folders),
        silent=_silent(found),
        tables="\n".join(tables),
    )


def _silent(found: Sequence[Outcome]) -> str:
    listed = _listed(found, "silent")
    return listed if listed.strip() else "None, on either way of judging.\n"


def _totals(product: Sequence[Outcome], interpreter: Sequence[Outcome]) -> str:
    rvm = [outcome for outcome in product if outcome.engine == "rvm"]
    other = [outcome for outcome in product if outcome.engine == "interpreter"]
    rows = [("as the product judges", product), ("- on the RVM", rvm), ("- on the interpreter", other)]
    rows.append(("interpreter alone", interpreter))
    lines = ["## Totals\n", "| | cases | " + " | ".join(_KINDS) + " |", "| --- |" + " ---: |" * (len(_KINDS) + 1)]
    lines += [f"| {name} | {len(some)} | {_counts(some)} |" for name, some in rows]
    return "\n".join(lines) + "\n"


def _counts(some: Iterable[Outcome]) -> str:
    counted = Counter(outcome.verdict for outcome in some)
    return " | ".join(str(counted[kind]) for kind in _KINDS)


def _by_folder(folders: Sequence[str], product: Sequence[Outcome], interpreter: Sequence[Outcome]) -> str:
    kinds = " | ".join(_KINDS)
    lines = [
        f"| folder | cases | on the RVM | {kinds} | interpreter: {kinds} | what does not pass |",
        "| --- |" + " ---: |" * (2 + 2 * len(_KINDS)) + " --- |",
    ]
    for folder in folders:
        ours = [outcome for outcome in product if outcome.folder == folder]
        alone = [outcome for outcome in interpreter if outcome.folder == folder]
        rvm = sum(outcome.engine == "rvm" for outcome in ours)
        lines.append(f"| {folder} | {len(ours)} | {rvm} | {_counts(ours)} | {_counts(alone)} | {_why(folder, ours)} |")
    return "\n".join(lines) + "\n"


def _why(folder: str, some: Sequence[Outcome]) -> str:
    missing = sorted({f"`{outcome.reason}`" for outcome in some if outcome.verdict == "unsupported"})
    refused = [outcome for outcome in some if outcome.verdict == "refused"]
    reasons = {_LANGUAGE[folder]} if refused and folder in _LANGUAGE else {_grouped(one.reason) for one in refused}
    failed = ["see below"] if any(outcome.verdict in {"failed", "silent"} for outcome in some) else []
    return ", ".join([*missing, *sorted(reasons), *failed]).replace("|", "\\|")


def _grouped(reason: str) -> str:
    """A reason without its place and the names of rules, so that those of one kind are the same."""
    if reason.startswith("recursive rules"):
        return "a query for all of `data`"
    return re.sub(r"^\S+\.rego:\d+:\d+: ", "", reason)


def _listed(found: Iterable[Outcome], verdict: Verdict) -> str:
    rows = [outcome for outcome in found if outcome.verdict == verdict]
    if not rows:
        return ""
    lines = ["| folder | case | judged by | why |", "| --- | --- | --- | --- |"]
    for one in rows:
        way = one.engine if one.way == "product" else "interpreter alone"
        lines.append(f"| {one.folder} | {_cell(one.note)} | {way} | {_cell(one.reason)} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _missing(product: Iterable[Outcome]) -> str:
    counted = Counter(outcome.reason for outcome in product if outcome.verdict == "unsupported")
    lines = ["| builtin | cases |", "| --- | ---: |", *(f"| `{name}` | {counted[name]} |" for name in sorted(counted))]
    return "\n".join(lines) + "\n"


def _refused(product: Iterable[Outcome]) -> str:
    refused = [outcome for outcome in product if outcome.verdict == "refused"]
    reasons = Counter(_LANGUAGE.get(outcome.folder) or _grouped(outcome.reason) for outcome in refused)
    lines = ["| reason | cases |", "| --- | ---: |"]
    lines += [f"| {_cell(reason)} | {reasons[reason]} |" for reason in sorted(reasons)]
    return "\n".join(lines) + "\n"
