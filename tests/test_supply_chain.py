"""All downloads to build, test and deploy are pinned: images by digest, actions by commit, packages by version."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT

DEPLOYED = sorted(path for path in (ROOT / "deploy").rglob("*") if path.is_file())
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
IMAGE = re.compile(r"^(?:FROM|  image:) (python\S*)", re.MULTILINE)


def texts() -> dict[str, str]:
    """Return the deployed files and the quotes of them in pages, by file."""
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in (*DEPLOYED, *PAGES)}


def test_images_have_a_version_and_a_digest() -> None:
    """A tag alone may be another image tomorrow."""
    images = [image for text in texts().values() for image in IMAGE.findall(text)]

    assert len(images) >= 4
    for image in images:
        assert re.fullmatch(r"[a-z]+:\d[\w.-]*@sha256:[0-9a-f]{64}", image), image
    digests = {image.partition("@")[::2] for image in images}
    assert len(digests) == len({name for name, _ in digests})


def test_actions_are_named_by_commit() -> None:
    """With the version next to it, for updates; each action has one commit everywhere."""
    lines = [line for text in texts().values() for line in re.findall(r"uses: \S+@.*", text)]
    pinned = [re.fullmatch(r"uses: ([\w./-]+)@([0-9a-f]{40}) # v\d+\.\d+\.\d+", line) for line in lines]

    assert len(lines) >= 8
    assert all(pinned), lines
    assert len({found[0] for found in pinned if found}) == len({found[1] for found in pinned if found})


def test_the_makefile_installs_known_versions_only() -> None:
    """By hash from the locks, or by version; our own packages need neither."""
    installs = re.findall(r"pip install .*", (ROOT / "Makefile").read_text(encoding="utf-8"))

    assert len(installs) >= 6
    for install in installs:
        assert re.search(r"--require-hashes|--no-deps --editable|[\w-]+==\$\([A-Z_]+\)", install), install


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the files that name images, and a `docker` that resolves one of them."""
    containers = ("deploy/container/Containerfile", "deploy/container/Containerfile.check")
    for name in ("Makefile", *containers, "deploy/ci/gitlab-ci.yml", "docs/recipes.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def pinned(copy: Path, output: str) -> subprocess.CompletedProcess[str]:
    """Run `make pin-images` with a `docker` that prints a digest."""
    docker = copy / "bin" / "docker"
    docker.parent.mkdir()
    docker.write_text(f"#!/bin/sh\nprintf '%s\\n' '{output}'\n")
    docker.chmod(0o755)
    environ = {**os.environ, "PATH": f"{docker.parent}{os.pathsep}{os.environ['PATH']}"}
    command = ["make", "--no-print-directory", "pin-images"]
    return subprocess.run(command, cwd=copy, env=environ, capture_output=True, text=True, check=False, timeout=60)


def test_digests_are_written_where_images_are_named(copy: Path) -> None:
    """In every file, with what follows the image on its line; nothing else changes."""
    digest = "sha256:" + "5" * 64
    before = (copy / "deploy/container/Containerfile").read_text()

    ran = pinned(copy, digest)

    assert ran.returncode == 0, ran.stderr
    after = (copy / "deploy/container/Containerfile").read_text()
    assert re.findall(r"^FROM .*", after, re.MULTILINE) == [
        f"FROM python:3.13-slim-trixie@{digest} AS build",
        f"FROM python:3.13-slim-trixie@{digest}",
    ]
    assert re.sub(r"^FROM .*", "", after, flags=re.MULTILINE) == re.sub(r"^FROM .*", "", before, flags=re.MULTILINE)
    for name in ("deploy/ci/gitlab-ci.yml", "docs/recipes.md"):
        assert f"  image: python:3.13-trixie@{digest} # with git\n" in (copy / name).read_text()


def test_an_invalid_digest_is_not_written(copy: Path) -> None:
    """A registry that does not respond changes nothing."""
    before = (copy / "deploy/container/Containerfile").read_text()

    ran = pinned(copy, "unauthorized")

    assert ran.returncode != 0
    assert "no digest" in ran.stderr
    assert (copy / "deploy/container/Containerfile").read_text() == before
