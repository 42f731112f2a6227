"""The page `docs/conformance.md`."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from tools.conformance.verdicts import Outcome, Verdict

_KINDS: tuple[Verdict, ...] = ("passed", "failed", "unsupported", "refused", "silent")
_LANGUAGE = {
    "keywordrefs": "keywords as names",
    "logic_operators": "`and` and `or` between conditions",
    "negation": "`not { ... }`",
    "stringinterpolation": 'templates (`$"..."`)',
}

_HEAD = """# Conformance with Open Policy Agent

Written by `make conformance`, which runs the test cases that OPA {opa} carries in its own module (`v1/test/cases/testdata/v1`,
{cases} cases in {folders} folders) on the embedded engine (regorus {engine}), with everything policyeng puts around it: the
rewriting of modules, the corrections, the refusals, and an error of a builtin taken for an error. `make test` runs it again
and fails when this page is no longer true or a case differs in silence.

What is expected comes from the case, and from OPA itself: a server of that version is asked each case with
`strict-builtin-errors`, and where it answers with an error, we must. *Passed* is the same value, or an error where OPA has
one. *Failed* is an error where OPA has a value: the pair becomes an `error` finding. *Unsupported* is a builtin that this
build does not have, and *refused* a bundle that is not compiled; both are errors when the bundle is loaded, with file and
line. *Silent* is a value where OPA has another one or an error: the only kind that could turn a verdict.

The product gives a policy to regorus's virtual machine (RVM) where that judges as OPA does and to regorus's interpreter
elsewhere; `policyeng policies list --engine` says which. The second table is the interpreter on its own.
"""

_HANDLED = """
What the cases, and comparing the engines builtin by builtin, showed to differ in silence, and what is done about it:

| construct | in regorus | here |
| --- | --- | --- |
| `json.match_schema`, `json.verify_schema` | errors worded otherwise, `null` for none | refused, except `[valid, _] := ...` and `...[0]` |
| `p[x].q contains y` | single elements are not found | refused |
| a package with functions named by references, as a value | the functions are left out | refused |
| an unknown function | found when it is called (interpreter) | refused |
| `json.patch`, `regex.replace`, and others given what they cannot use | undefined | an error, as in OPA |
| an empty alternative in a glob, several documents in YAML text, `object.subset` of a set and a list | another answer | an error |
| `sort`, `min`, `max` of objects and sets together | an object after a set | an error |
| a package without rules as a value; a number for a key of `data` | no value on the RVM | given to the interpreter |
| `k, v in set` | false in the interpreter | rewritten |
| `count` of a string | counts units of UTF-16 | corrected |
| `uuid.parse` of 38 characters, `json.is_valid`, `yaml.is_valid`, `semver.is_valid` of what is no string | undefined or an error | corrected |

Left, and met by no case: `<` and the order inside a set put an object after a set; the interpreter takes `data.x[2.0]` for
`data.x["2"]`.

`http.send`, `net.lookup_ip_addr`, `opa.runtime`, `time.now_ns`, `rand.intn` and `uuid.rfc4122` are refused on purpose: a
policy sees its input and nothing else, and the same input gives the same verdict.
"""


def page(found: Sequence[Outcome], opa: str, engine: str) -> str:
    """The page for the outcomes of a run; the same outcomes give the same page."""
    ways = {way: [outcome for outcome in found if outcome.way == way] for way in ("product", "interpreter")}
    folders = sorted({outcome.folder for outcome in found})
    parts = [
        _HEAD.format(opa=opa, engine=engine, cases=len(ways["product"]), folders=len(folders)),
        "## Cases that differ in silence\n\n" + _silent(found) + "\n" + _HANDLED,
        _totals(ways["product"], ways["interpreter"]),
        "## By folder\n\n" + _by_folder(folders, ways["product"], ways["interpreter"]),
        "## Cases that fail\n\n" + _listed(found, "failed"),
        "## Builtins that are missing or refused\n\n" + _missing(ways["product"]),
        "## Modules that are refused\n\n" + _refused(ways["product"]),
    ]
    return "\n".join(parts)


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
