"""Build the container without an engine for containers: the steps of the Containerfile, run below a folder.

Every `COPY` and `RUN` of the stage `build` is executed as it stands, with the programs of this machine in place of
those of its images; then what the image would start is started with its arguments and environment, and as its user.
`python -m tests.container` takes some minutes, because it compiles the native engine.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.conftest import ROOT

CONTAINERFILE = ROOT / "deploy" / "container" / "Containerfile"
IGNORED = ROOT / ".dockerignore"
#: Where the steps put what they make.
PLACES = ("/opt/", "/etc/policyeng", "/build")


class Step(NamedTuple):
    """One instruction of one stage."""

    stage: int
    name: str
    text: str


def steps() -> Iterator[Step]:
    """The instructions of the Containerfile, continued lines joined and comments left out."""
    text = CONTAINERFILE.read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    stage = -1
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        name, _, rest = line.strip().partition(" ")
        if name:
            stage += name == "FROM"
            yield Step(stage, name, rest.strip())


def environment(stage: int) -> dict[str, str]:
    """What `ENV` sets in a stage."""
    pairs = (pair for step in steps() if step[:2] == (stage, "ENV") for pair in step.text.split())
    return dict(pair.split("=", 1) for pair in pairs)


def final(name: str) -> str:
    """The last instruction of a name, which the image keeps."""
    return [step.text for step in steps() if step.name == name][-1]


def below(text: str, folder: Path) -> str:
    """A step with its places below a folder."""
    return re.sub(r"(?<![\w/.])(?=(?:" + "|".join(PLACES) + "))", str(folder), text)


def copied(sources: list[str], target: Path) -> None:
    """Copy from the repository as `COPY` does, without what `.dockerignore` names."""
    for source in sources:
        path = ROOT / source
        if path.is_dir():
            left_out = shutil.ignore_patterns("target", "__pycache__", "*.so")
            shutil.copytree(path, target / source, ignore=left_out)
        else:
            shutil.copy(path, target)


def build(folder: Path) -> None:
    """Run the steps of the stage `build`.

    Raises:
        CalledProcessError: one of them fails, as it would in a build.
    """
    (folder / "build").mkdir()
    (folder / "opt").mkdir()
    given = {key: value for key, value in environment(1).items() if key.startswith("PIP_")}
    for step in steps():
        if step.stage != 1:
            continue
        if step.name == "COPY" and not step.text.startswith("--from"):
            *sources, _ = step.text.split()
            copied(sources, folder / "build")
        elif step.name == "RUN":
            script = re.sub(r"(?<![\w/-])python(?= -m)", sys.executable, below(step.text, folder))
            environ = {key: value for key, value in os.environ.items() if not key.startswith(("POLICYENG_", "PYTHON"))}
            subprocess.run(["sh", "-c", script], cwd=folder / "build", env={**environ, **given}, check=True)


def started(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Start the entry point as the image does: its environment alone, as its user, in its folder."""
    (program,) = json.loads(below(final("ENTRYPOINT"), folder))
    user, _, group = final("USER").partition(":")
    is_root = os.geteuid() == 0
    place = folder / "etc" / "policyeng"
    place.mkdir(parents=True, exist_ok=True)
    return subprocess.run(
        [program, *arguments],
        cwd=place,
        env={key: below(value, folder) for key, value in environment(2).items()},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        user=int(user) if is_root else None,
        group=int(group) if is_root else None,
        extra_groups=[] if is_root else None,
    )


def main() -> None:
    """Build below a temporary folder, and try what was built."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        build(folder)
        snapshot = folder / "snapshot.json"
        shutil.copy(ROOT / "samples/workspaces/regulated.json", snapshot)
        shutil.rmtree(folder / "build")  # the image has nothing of it
        checked = started(folder, "check", str(snapshot), "--as-of", "2026-06-01T00:00:00Z", "--format", "json")
        assert checked.returncode == 1, checked.stderr
        assert json.loads(checked.stdout)["summary"]["error"] == 0
        served = started(folder, *json.loads(below(final("CMD"), folder)))
        assert served.returncode in (2, 3), f"it started without tokens: {served.stderr}"
        left = [path for path in (folder / "opt/policyeng").rglob("*") if path.stat().st_uid != folder.stat().st_uid]
        assert not left, f"it wrote {left[:3]}"
        print(
            f"the image would judge a snapshot: exit {checked.returncode}; and without tokens: {served.stderr.strip()}"
        )


if __name__ == "__main__":
    main()
