"""Real files: each is read, or refused or passed over with the reason in `expected/real_files.json`.

`python -m tests.test_sources_real_files --write` writes that list anew; read the difference before you keep it.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from policyeng.bundle import Bundle, load_bundle
from policyeng.models import JsonObject
from policyeng.sources import FORMATS, read_inputs
from tests.real_files import FOLDERS, REAL, Judged, files_in, holds_machine_learning, is_read, needed, outcome

EXPECTED = Path(__file__).parent / "expected" / "real_files.json"

#: The JSON Pointer before a reason.
_PLACE = re.compile(r"^/\S*: ")
#: Files that contain Machine Learning resources and that no reader can read, each with the reason.
_NO_ID = "its `id` has no leading slash, unlike every response of the service"
UNREADABLE: dict[str, str] = {
    "arm_rest_bodies/preview/2020-09-01-preview/createBasicAKSCompute__200.json": _NO_ID,
    "arm_rest_bodies/preview/2020-09-01-preview/createBasicAKSCompute__201.json": _NO_ID,
    "arm_rest_bodies/stable/2024-10-01/Compute/createOrUpdate/BasicAKSCompute__200.json": _NO_ID,
    "arm_rest_bodies/stable/2024-10-01/PrivateEndpointConnection/list__200.json": "its `type` is the word `string`",
}


@cache
def expected() -> dict[str, JsonObject]:
    """The expected entry of each file, by its path below the folder of all."""
    kept: dict[str, JsonObject] = json.loads(EXPECTED.read_text(encoding="utf-8"))
    return kept


def outcomes(folder: str, bundle: Bundle) -> dict[str, Judged]:
    """The results of the files of a folder."""
    return {path.relative_to(REAL).as_posix(): outcome(path, bundle) for path in files_in(REAL / folder)}


def table(folder: str, found: dict[str, Judged]) -> str:
    """The counts of a folder: one line, and one for each reason."""
    entries = [each.entry for each in found.values()]
    read = sum(map(is_read, entries))
    nothing = sum(not is_read(entry) and "refused" not in entry for entry in entries)
    resources = sum(entry.get("resources", 0) for entry in entries)
    findings, unknown = sum(each.findings for each in found.values()), sum(each.unknown for each in found.values())
    share = f"{100 * unknown / findings:.0f} % of {findings} findings unknown" if findings else "no findings"
    refused = len(entries) - read - nothing
    counts = f"{len(entries)} files, {read} read, {nothing} with nothing to evaluate, {refused} refused"
    reasons = Counter(
        _PLACE.sub("", reason).partition(": ")[0][:60]
        for entry in entries
        if not is_read(entry)
        for reason in entry.get("refused", ())[:1]
    )
    lines = [f"\n{folder}: {counts}, {resources} resources, {share}"]
    return "\n".join(lines + [f"    {count:4} refused: {reason}" for reason, count in reasons.most_common(8)])


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_real_file_comes_to_what_is_expected(
    folder: str, bundle: Bundle, capsys: pytest.CaptureFixture[str]
) -> None:
    """None raises or passes silently: files with resources are evaluated, and any other has its reason."""
    needed()
    found = outcomes(folder, bundle)
    with capsys.disabled():
        sys.stdout.write(table(folder, found))

    kept = {name: entry for name, entry in expected().items() if name.startswith(f"{folder}/")}
    assert {name: result.entry for name, result in found.items()} == kept
    for name, result in found.items():
        assert result.findings or not result.entry.get("resources") or "no policy judges" in result.entry, name
        assert is_read(result.entry) or {"refused", "nothing"} & result.entry.keys(), name


def is_read_as(name: str, entry: JsonObject) -> bool:
    """Whether resources are read from a file by this format."""
    return bool(entry.get("resources")) and name in entry.get("format", "").split(", ")


def test_every_folder_is_looked_at() -> None:
    """A new one is not left out, and the list names no file that is gone."""
    folders = {path.name for path in needed().iterdir() if path.is_dir()}
    assert folders == set(FOLDERS)
    assert {name for name in expected() if not (REAL / name).is_file()} == set()


@pytest.mark.parametrize("folder", [folder for folder, name in FOLDERS.items() if name])
def test_nearly_all_files_with_machine_learning_are_read(folder: str) -> None:
    """At least 97 of 100, by the format of the folder; what it cannot read is listed here with the reason."""
    needed()
    name = FOLDERS[folder]
    files = [path.relative_to(REAL).as_posix() for path in files_in(REAL / folder) if holds_machine_learning(path)]
    missed = [file for file in files if file not in UNREADABLE and not is_read_as(name, expected()[file])]
    assert len(missed) <= 0.03 * len(files), missed
    assert name in FORMATS


@pytest.mark.parametrize("folder", ["terraform", "arm_template"])
def test_source_code_is_refused_with_its_command(folder: str) -> None:
    """Bicep is compiled and Terraform is planned first."""
    needed()
    commands = {".bicep": "az bicep build", ".tf": "terraform show -json"}
    for path in files_in(REAL / folder):
        if path.suffix in commands:
            snapshot, [problem], *_ = read_inputs([path])
            assert commands[path.suffix] in problem.message
            assert not snapshot.resources


def test_a_whole_folder_of_real_files_is_one_run() -> None:
    """Refused files do not hide the others: as many resources as the files contain one by one, each id once."""
    snapshot, problems, files, *_ = read_inputs([needed() / "arm_rest_live"])
    alone = sum(entry.get("resources", 0) for name, entry in expected().items() if name.startswith("arm_rest_live/"))

    refused_whole = [
        name for name, entry in expected().items() if name.startswith("arm_rest_live/") and "format" not in entry
    ]
    assert len(files) == len(files_in(REAL / "arm_rest_live")) - len(refused_whole)
    repeated = [problem for problem in problems if "duplicate " in problem.message]
    assert len(snapshot.resources) == alone - len(repeated)
    assert len({resource["id"].lower() for resource in snapshot.resources}) == len(snapshot.resources)


def test_output_of_az_ml_is_never_taken_for_arm() -> None:
    """It has other names for the settings, so reading it as ARM would find them all absent."""
    for path in files_in(needed() / "cli_v2_output"):
        assert "arm-rest" not in {read.format for read in read_inputs([path]).read}, path


def main() -> None:
    """Print the counts of every folder; with `--write`, write the expected list, too."""
    bundle = load_bundle()
    every: dict[str, JsonObject] = {}
    for folder in FOLDERS:
        found = outcomes(folder, bundle)
        sys.stdout.write(table(folder, found))
        every |= {name: result.entry for name, result in found.items()}
    if "--write" in sys.argv:
        EXPECTED.write_text(json.dumps(every, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
