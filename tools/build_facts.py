"""Write `policies/facts/*/data.json` from the vendor's lists and the hand-made tables in `tools/facts`.

    python tools/build_facts.py --sizes SIZES --isolated ISOLATED --retirements RETIREMENTS --roles ROLES [--verify]

SIZES is the parsed list of kubernetes/autoscaler ({size: {family, vCPUs, memoryMb, gpus}}), ISOLATED and RETIREMENTS
are the parsed pages of Microsoft, ROLES is a list in the form of `az role definition list`. The same inputs give the
same bytes: keys are sorted and each row is one line. `--verify` writes nothing and exits 1 if a file differs.

Tables (each row cites an id of `sources.csv`): `series.csv` states which series a VM family is, `more_sizes.csv` the
sizes the list lacks, `corrections.csv` what it cuts off or counts wrongly, `vm_series.csv` and `isolated.csv` what the
documents say, `training_targets.csv` which features they give each training target, `offered_series.csv` and
`offered_targets.csv` what the service supports today beyond the documents (a series of the list for managed endpoints
counts for clusters and instances too), `retirement_names.csv` which series a name in RETIREMENTS means,
`more_retirements.csv` and `more_roles.json` further rows, `replacements.csv` the series that the vendor recommends
instead of a retired one, `roles_elsewhere.csv` the built-in roles that reach no Machine Learning action,
`harmless_classifications.csv` the classifications of data that is not regulated.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TABLES = Path(__file__).resolve().parent / "facts"

Row = dict[str, Any]
Facts = dict[str, dict[str, Row] | list[Row]]


def table(name: str) -> list[dict[str, str]]:
    """Return the rows of a hand-made table, columns by name."""
    with (TABLES / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def number(text: str | float) -> int | float:
    """Return a number without a needless fraction: 2.0 is 2."""
    value = float(text)
    return int(value) if value.is_integer() else value


def listed_sizes(listed: Mapping[str, Row]) -> list[Row]:
    """Return the sizes of the autoscaler's list, corrected from more exact pages of the vendor."""
    corrections = {row.pop("size"): row for row in table("corrections.csv")}
    if unknown := corrections.keys() - listed.keys():
        raise SystemExit(f"corrections.csv names sizes that the list lacks: {sorted(unknown)}")
    rows = []
    for name, size in listed.items():
        row = {"size": name, "family": size["family"], "vcpus": size["vCPUs"], "memory_gib": size["memoryMb"] / 1024}
        row |= {"gpus": size["gpus"], "fpgas": 0, "source": "autoscaler-2026"}
        rows.append(row | {column: value for column, value in corrections.get(name, {}).items() if value})
    return rows


def vm_sizes(listed: Mapping[str, Row]) -> dict[str, Row]:
    """Every size by lower-case name; its series follows from its family."""
    series = {row["family"]: row["series"] for row in table("series.csv")}
    sizes: dict[str, Row] = {}
    for row in [*listed_sizes(listed), *table("more_sizes.csv")]:
        key = row["size"].lower()
        if key in sizes:
            raise SystemExit(f"{row['size']} is given twice")
        if row["family"] not in series:
            raise SystemExit(f"series.csv has no series for the family {row['family']} of {row['size']}")
        sizes[key] = {
            "name": row["size"],
            "series": series[row["family"]],
            "family": row["family"],
            "vcpus": int(row["vcpus"]),
            "memory_gib": number(row["memory_gib"]),
            "gpus": number(row["gpus"]),
            "fpgas": int(row["fpgas"]),
            "source": row["source"],
        }
    return sizes


def series_table(name: str) -> dict[str, Row]:
    """Return a table of supported series: `vm_series` of the documents, `offered_series` of the vendor today."""
    return {
        row["series"]: {
            "category": row["category"],
            "restriction": row["restriction"],
            "supported_by": row["supported_by"].split(";"),
            "source": row["source"],
        }
        for row in table(f"{name}.csv")
    }


def targets_table(name: str) -> dict[str, Row]:
    """Return a table of training targets, by the words of a workload: `yes`, `no` or what else the source gives."""
    return {row.pop("target"): dict(row) for row in table(f"{name}.csv")}


def isolated_sizes(page: Mapping[str, Any]) -> dict[str, Row]:
    """Return the isolated sizes of the documents and of the vendor; the documents win where both name one."""
    vendor = {name: "azure-isolation" for names in page["isolated"].values() for name in names}
    documents = {row["size"]: row["source"] for row in table("isolated.csv")}
    return {name.lower(): {"name": name, "source": source} for name, source in (vendor | documents).items()}


def isolation_ended(page: Mapping[str, Any]) -> dict[str, Row]:
    """Return the sizes that were isolated, with the day on which that ended."""
    ended = page["no_longer_isolated"]
    return {name.lower(): {"name": name, "date": day, "source": "azure-isolation"} for name, day in ended.items()}


def announced(pages: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the rows of the vendor's pages by their name: status, date and further words, in any order."""
    return {name: rest for name, *rest in pages["rows"]} | dict(pages["other_pages"])


def vendor_retirements(pages: Mapping[str, Any]) -> list[Row]:
    """One row for each series or size that a name of the vendor's pages means."""
    names = {row["name"]: row for row in table("retirement_names.csv")}
    announcements = announced(pages)
    if names.keys() != announcements.keys():
        raise SystemExit(f"retirement_names.csv and the pages differ: {sorted(names.keys() ^ announcements.keys())}")
    notes = {row["applies_to"]: announcements[name][0] for name, row in names.items() if row["kind"] == "note"}
    rows = []
    for name, row in names.items():
        if row["kind"] == "note":
            continue
        status = "retired" if "Retired" in announcements[name] else "announced"
        day = next(word for word in announcements[name] if re.fullmatch(r"\d{4}-\d\d-\d\d", word))
        for target in row["applies_to"].split(";"):
            note = notes.get(target, "")
            rows.append(row | {"applies_to": target, "status": status, "date": day, "note": note})
    return rows


def retirements(pages: Mapping[str, Any], sizes: Mapping[str, Row]) -> list[Row]:
    """Every retirement with the sizes it concerns, by date, then series, then size."""
    move_to = {row["series"]: row["move_to"] for row in table("replacements.csv")}
    of_series: dict[str, list[str]] = {}
    for key, size in sizes.items():
        of_series.setdefault(size["series"], []).append(key)
    rows = []
    for row in [*vendor_retirements(pages), *table("more_retirements.csv")]:
        series = row["applies_to"] if row["kind"] == "series" else None
        keys = sorted(of_series.get(series, [])) if series else [row["applies_to"].lower()]
        if not keys or any(key not in sizes for key in keys):
            raise SystemExit(f"a retirement names {row['applies_to']}, which no size of the catalogue is")
        made = {"sizes": keys, "series": series, "date": row["date"], "status": row["status"], "source": row["source"]}
        replaced_by = move_to.get(series or sizes[keys[0]]["series"])
        rows.append(
            made | ({"move_to": replaced_by} if replaced_by else {}) | ({"note": row["note"]} if row["note"] else {})
        )
    return sorted(rows, key=lambda row: (row["date"], row["series"] or "", row["sizes"]))


def retired_sizes(rows: Iterable[Row]) -> dict[str, Row]:
    """Return the earliest retirement of each size; `rows` are sorted by date."""
    index: dict[str, Row] = {}
    for row in rows:
        for size in row["sizes"]:
            index.setdefault(size, {key: row[key] for key in ("date", "source", "move_to") if key in row})
    return index


def roles(definitions: Iterable[Row]) -> dict[str, Row]:
    """Return the built-in roles that name or reach Machine Learning, by lower-case GUID, with their conditions."""
    more = json.loads((TABLES / "more_roles.json").read_text(encoding="utf-8"))
    keys = ("actions", "notActions", "dataActions", "notDataActions")
    return {
        role["name"].lower(): {
            "name": role["roleName"],
            "guid": role["name"].lower(),
            "type": role["roleType"],
            "permissions": [
                {key: block[key] for key in keys}
                | ({"condition": block["condition"]} if block.get("condition") else {})
                for block in role["permissions"]
            ],
            "source": "azure-built-in-roles",
        }
        for role in [*definitions, *more]
    }


def roles_elsewhere() -> dict[str, Row]:
    """Return the built-in roles without an action that reaches Machine Learning, by lower-case GUID."""
    return {
        row["guid"]: {"name": row["name"], "source": "azure-built-in-roles"} for row in table("roles_elsewhere.csv")
    }


def sources() -> dict[str, Row]:
    """Return the cited sources; the founding documents have no date."""
    rows = {row.pop("id"): row for row in table("sources.csv")}
    return {key: {column: value or None for column, value in row.items()} for key, row in rows.items()}


def build(paths: argparse.Namespace) -> Facts:
    """All facts by folder name."""
    sizes_in, isolated_in, retirements_in, roles_in = (
        json.loads(Path(path).read_text(encoding="utf-8"))
        for path in (paths.sizes, paths.isolated, paths.retirements, paths.roles)
    )
    sizes = vm_sizes(sizes_in)
    retired = retirements(retirements_in, sizes)
    return {
        "harmless_classifications": {row["name"]: row for row in table("harmless_classifications.csv")},
        "isolated_sizes": isolated_sizes(isolated_in),
        "isolation_ended": isolation_ended(isolated_in),
        "offered_series": series_table("offered_series"),
        "offered_targets": targets_table("offered_targets"),
        "retired_sizes": retired_sizes(retired),
        "retirements": retired,
        "roles": roles(roles_in),
        "roles_elsewhere": roles_elsewhere(),
        "sources": sources(),
        "training_targets": targets_table("training_targets"),
        "vm_series": series_table("vm_series"),
        "vm_sizes": sizes,
    }


def render(rows: dict[str, Row] | list[Row]) -> str:
    """JSON with one row a line, so that a change of one row is a change of one line."""

    def compact(value: object) -> str:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    if isinstance(rows, list):
        return "[\n" + ",\n".join(map(compact, rows)) + "\n]\n"
    return "{\n" + ",\n".join(f"{compact(key)}:{compact(rows[key])}" for key in sorted(rows)) + "\n}\n"


def main(arguments: list[str] | None = None) -> int:
    """Write or verify the facts; 0 when written or equal, 1 when a file differs."""
    parser = argparse.ArgumentParser(description="Write policies/facts from the vendor's lists and tools/facts.")
    for name in ("sizes", "isolated", "retirements", "roles"):
        parser.add_argument(f"--{name}", required=True, type=Path)
    parser.add_argument("--out", type=Path, default=ROOT / "policies" / "facts")
    parser.add_argument("--verify", action="store_true", help="compare instead of writing")
    paths = parser.parse_args(arguments)
    different = []
    for name, rows in build(paths).items():
        target = paths.out / name / "data.json"
        text = render(rows)
        if target.exists() and target.read_text(encoding="utf-8") == text:
            continue
        different.append(str(target))
        if not paths.verify:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
    for path in different:
        sys.stdout.write(f"{'differs' if paths.verify else 'written'}: {path}\n")
    return 1 if paths.verify and different else 0


if __name__ == "__main__":
    sys.exit(main())
