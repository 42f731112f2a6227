"""Write `policies/frameworks/<name>/data.json` from the catalogues and the mappings in `tools/frameworks`.

    python tools/build_frameworks.py [--verify]

`catalogue/<name>.yaml` has the controls of a framework by domain, each described in our words, and what a person would
show for a control that no policy tests. `mappings.yaml` has the themes of the policies and their controls. The same
files give the same bytes. `--verify` writes nothing and exits 1 if a file differs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
TABLES = Path(__file__).resolve().parent / "frameworks"
DISCLAIMER = (
    "Microsoft's and our mappings say that a setting supports a control; they do not show that the control is met."
)
#: From what convinces most to what convinces least.
BASES = ("published", "analogue", "derived", "own")
#: The frameworks to which Microsoft's workbook of MCSB v1 maps.
IN_WORKBOOK = ("nist-800-53-r5", "cis-controls-v8.1")

Row = dict[str, Any]


def read(path: Path) -> Row:
    """Return a YAML file with all scalars as text, because `3.10` is an id."""
    document: Row = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)  # noqa: S506  # a safe loader
    return document


def mapped(mappings: Row, framework: str) -> Iterator[tuple[str, Row]]:
    """Yield the mappings of a framework, each with the id of its control."""
    for policy, row in sorted(mappings["policies"].items()):
        published = row.get("published", {}).get(framework, [])
        found: dict[str, Row] = {}
        for theme in row["themes"]:
            for group in mappings["themes"][theme].get(framework, []):
                relevance, basis = group.get("relevance", "direct"), group["basis"]
                for control in group["controls"]:
                    own = basis
                    if control in published:
                        own = "published"
                    elif basis == "published" and relevance == "related":
                        continue
                    elif basis == "published":
                        own = "analogue"
                    known = found.get(control)
                    if known is None or relevance < known["relevance"]:  # direct, and of these that of the first theme
                        source = source_of(mappings, framework, row, theme, own)
                        found[control] = {"id": policy, "basis": own, "relevance": relevance, "source": source}
        if missing := set(published) - set(found):
            raise SystemExit(f"{policy} publishes controls of {framework} that none of its themes has: {missing}")
        yield from found.items()
    for control, policies in mappings["analogues"].get(framework, {}).items():
        for policy in policies:
            source = "prowler 3e000faa, by a sibling check"
            yield control, {"id": policy, "basis": "analogue", "relevance": "direct", "source": source}


def rank(relevance: str, basis: str) -> tuple[bool, int]:
    """Return the sort key of a mapping: direct ones first."""
    return relevance != "direct", BASES.index(basis)


def source_of(mappings: Row, framework: str, row: Row, theme: str, basis: str) -> str:
    """Return whose word a mapping is."""
    initiatives = mappings["initiatives"].get(framework)
    if basis == "published":
        return f"initiative {initiatives}, by definition {', '.join(row['definitions'])}"
    if basis == "analogue":
        of = f"initiative {initiatives}" if initiatives else "prowler 3e000faa"
        return f"{of}, by the same setting of another service"
    if basis == "derived":
        return "MCSB v1, workbook of mappings" if framework in IN_WORKBOOK else "MCSB v2, pages of its controls"
    return f"policyeng: {mappings['themes'][theme]['title']}"


def document(name: str, catalogue: Row, mappings: Row) -> Row:
    """Return the document of one framework.

    Raises:
        SystemExit: a mapping names a control that the catalogue lacks, or the catalogue has a control twice.
    """
    by_control: dict[str, list[Row]] = {}
    for mapped_to, row in mapped(mappings, name):
        by_control.setdefault(mapped_to, []).append(row)
    controls: list[Row] = []
    for domain, group in catalogue["domains"].items():
        process = group.get("process", [])
        for identity, title in group["controls"].items():
            policies = by_control.pop(identity, [])
            control: Row = {"id": identity, "title": title, "domain": domain}
            is_tested = any(row["relevance"] == "direct" for row in policies)
            if (process == "true" or identity in process) and not is_tested:
                control["kind"] = "process"
            if not is_tested:
                control["guidance"] = group["guidance"]
            if policies:
                control["policies"] = sorted(
                    policies, key=lambda row: (rank(row["relevance"], row["basis"]), row["id"])
                )
            controls.append(control)
    if by_control:
        raise SystemExit(f"the catalogue of {name} lacks {', '.join(sorted(by_control))}")
    if len({control["id"] for control in controls}) != len(controls):
        raise SystemExit(f"the catalogue of {name} has a control twice")
    head: Row = {key: catalogue[key] for key in ("title", "version", "date", "source") if key in catalogue}
    if catalogue.get("preview") == "true":
        head["preview"] = True
    note = f" {sentence(catalogue['note'])}" if "note" in catalogue else ""
    return {"id": name, **head, "disclaimer": f"{DISCLAIMER}{note}", "controls": controls}


def sentence(text: str) -> str:
    """Return a text with a capital letter and a period."""
    return f"{text[0].upper()}{text[1:].removesuffix('.')}."


def written(framework: Mapping[str, Any]) -> str:
    """Return a framework as JSON, each control on a line and each mapping on one."""
    lines = [f"  {json.dumps(key)}: {dump(value)}," for key, value in framework.items() if key != "controls"]
    controls = []
    for control in framework["controls"]:
        rest = {key: value for key, value in control.items() if key != "policies"}
        text = f"    {dump(rest)}"
        if policies := control.get("policies"):
            rows = ",\n".join(f"      {dump(row)}" for row in policies)
            text = f'{text[:-1]}, "policies": [\n{rows}\n    ]}}'
        controls.append(text)
    every = ",\n".join(controls)
    return "\n".join(["{", *lines, '  "controls": [', every, "  ]", "}", ""])


def dump(value: object) -> str:
    """Return a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False)


def main() -> int:
    """Write the files, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--verify", action="store_true", help="write nothing, and exit 1 if a file differs")
    args = parser.parse_args()
    mappings, differs = read(TABLES / "mappings.yaml"), False
    for path in sorted((TABLES / "catalogue").glob("*.yaml")):
        text = written(document(path.stem, read(path), mappings))
        place = ROOT / "policies" / "frameworks" / path.stem / "data.json"
        if args.verify:
            if not place.is_file() or place.read_text(encoding="utf-8") != text:
                print(f"{place.relative_to(ROOT)} differs", file=sys.stderr)
                differs = True
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    return int(differs)


if __name__ == "__main__":
    sys.exit(main())
