"""The names of a new policy: its area and folder, and an id that is still free."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable

from policyeng.bundle.files import TEST_FOLDERS
from policyeng.errors import UsageError
from policyeng.models import Severity
from policyeng.parsing.json_text import shortened

#: The part of an id for each built-in area; for other areas it is the area itself.
AREAS = {
    "isolation": "ISO",
    "network": "NET",
    "rbac": "RBAC",
    "sku": "SKU",
    "inference": "INF",
    "training": "TRN",
    "cost": "COST",
    "operations": "OPS",
    "compute": "CMP",
    "encryption": "ENC",
    "data_access": "DAT",
    "identity": "IDN",
    "endpoints": "END",
    "registries": "REG",
    "jobs": "JOB",
    "logging": "LOG",
    "governance": "GOV",
    "recovery": "DR",
}
#: Names of directories that do not identify the owner of their policies.
_GENERIC = {"BUNDLE", "OPA", "POLICIES", "POLICY", "POLICYENG", "REGO", "RULES"}
_ID = re.compile(r"([A-Z][A-Z0-9]*(?:-[A-Z0-9]+)*)-([0-9]+)")
#: The longest name of an area or a policy: with a suffix it is a file name everywhere.
_LONGEST = 100
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_REGO_WORDS = frozenset(
    {"as", "contains", "data", "default", "else", "every", "false", "if", "import", "in", "input", "not", "null"}
    | {"package", "set", "some", "true", "with"}
)
#: Folders of a bundle that hold something else, and parts of `data` that are not a bundle's own.
_TAKEN_AREAS = frozenset({"baselines", "facts", "lib", "policyeng", "profiles", "system"}) | TEST_FOLDERS


def split_name(path: str) -> tuple[str, str]:
    """Return the area and the name of `AREA/NAME`.

    Raises:
        UsageError: it is no such path, or a part cannot name a folder and a package.
    """
    parts = path.split("/")
    if len(parts) != 2:
        remedy = "name the area and the policy, such as `network/private_endpoints`"
        raise UsageError(f"`{path}` is not AREA/NAME", remedy=remedy)
    area, name = parts
    for part in parts:
        if len(part) > _LONGEST:
            what = f"the name `{shortened(part, 40)}` has {len(part)} characters, and a name has at most {_LONGEST}"
            raise UsageError(what, remedy="name the requirement in a few words; details belong in the title")
        if not _NAME.fullmatch(part) or part in _REGO_WORDS or keyword.iskeyword(part):
            suggested = "/".join(_suggested(each) for each in parts)
            what = f"`{part}` cannot name a folder and a package; `{suggested}` would do"
            remedy = "names are lower-case letters, digits and `_`, and no word of Rego or Python"
            raise UsageError(what, remedy=remedy)
    if area in _TAKEN_AREAS:
        remedy = "name another area, such as `acme`"
        raise UsageError(f"`{area}` holds something else than policies", remedy=remedy)
    if area in set(Severity):
        what = f"`{area}` is a severity, and `--select {area}` would no longer choose by it"
        raise UsageError(what, remedy="name another area, such as `acme`")
    if name.startswith("test_") or name.endswith("_test") or name == "conftest":
        raise UsageError(f"`{name}` would be taken for a test", remedy="name what the policy asks for")
    return area, name


def title_of(name: str) -> str:
    """Return a title to begin with: the name in words."""
    return name.replace("_", " ").strip().capitalize()


def next_id(area: str, in_area: Iterable[str], elsewhere: Iterable[str], directory: str) -> str:
    """Return the id after the highest that the area has.

    Args:
        area: the area of the new policy.
        in_area: the ids of the area's policies; the new id gets the prefix that most of them share.
        elsewhere: the other ids of the directory, which provide the prefix if the area has none.
        directory: its name, which provides the prefix if there are no ids.
    """
    ours, others = _group_numbers(in_area), _group_numbers(elsewhere)
    if ours:
        prefix = max(ours, key=lambda known: len(ours[known]))
    else:
        owners = [known.partition("-")[0] for known, numbers in others.items() for _ in numbers]
        owner = max(owners, key=owners.count) if owners else _owner(directory)
        prefix = f"{owner}-{AREAS.get(area, re.sub('[^A-Z0-9]', '', area.upper()))}"
    numbers = ours.get(prefix, []) + others.get(prefix, [])
    highest = max(numbers, key=int, default="000")
    return f"{prefix}-{int(highest) + 1:0{len(highest)}}"


def _group_numbers(ids: Iterable[str]) -> dict[str, list[str]]:
    """Return the numbers of ids by their prefix."""
    found: dict[str, list[str]] = {}
    for identity in ids:
        parts = _ID.fullmatch(identity)
        if parts:
            found.setdefault(parts[1], []).append(parts[2])
    return found


def _owner(directory: str) -> str:
    first = re.match(r"[A-Z][A-Z0-9]*", directory.upper())
    return first[0] if first and first[0] not in _GENERIC else "ORG"


def _suggested(part: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "_", part.lower()).strip("_")
    if not re.match("[a-z]", name):
        return f"a_{name}".rstrip("_")
    return f"{name}_" if name in _REGO_WORDS or keyword.iskeyword(name) else name
