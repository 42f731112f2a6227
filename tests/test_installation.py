"""The wheel installs from a directory of wheels, without any other index, and checks a sample in an empty directory."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.test_extras import require_hints

pytestmark = pytest.mark.slow
_PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel and the libraries that the lock names; these come from the index that pip is configured for."""
    folder = tmp_path_factory.mktemp("wheels")
    target = ("--wheel-dir", folder, "--no-deps")
    subprocess.run([*_PIP, "wheel", "--no-build-isolation", *target, ROOT], check=True)
    locked = ("--require-hashes", "--only-binary", ":all:", "-r", ROOT / "requirements.lock")
    subprocess.run([*_PIP, "download", "--no-deps", "--dest", folder, *locked], check=True)
    return folder


def program(name: str) -> str:
    """A program on the path or next to Python; the test is skipped without it."""
    folder = Path(sys.executable).parent
    found = shutil.which(name, path=f"{folder}{os.pathsep}{os.environ.get('PATH', '')}")
    if found is None:
        pytest.skip(f"`{name}` is not installed; the extra `dev` contains it")
    return found


def environment(folder: Path) -> dict[str, str]:
    """Variables with which every tool keeps what it makes below a folder, and finds nothing of this checkout."""
    places = {
        "HOME": ".", "UV_TOOL_DIR": "tools", "UV_TOOL_BIN_DIR": "bin", "UV_CACHE_DIR": "cache",
        "PIPX_HOME": "pipx", "PIPX_BIN_DIR": "bin", "XDG_CACHE_HOME": "cache",
    }  # fmt: skip
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {**kept, **{name: str(folder / place) for name, place in places.items()}, "UV_PYTHON": sys.executable}


def check(command: Sequence[str | Path], folder: Path) -> None:
    """Check a sample in an empty directory."""
    empty = folder / "empty"
    empty.mkdir()
    sample = shutil.copy(ROOT / "samples" / "workspaces" / "regulated.json", empty)
    words = ("check", Path(sample).name, "--as-of", "2026-06-01T00:00:00Z", "--summary")
    ran = subprocess.run(
        [*command, *words], cwd=empty, env=environment(folder), capture_output=True, text=True, check=False
    )

    assert ran.returncode == 1, ran.stderr
    assert "FAILED" in ran.stdout


def install(command: Sequence[str | Path], folder: Path) -> None:
    """Install, with what is printed where that fails."""
    ran = subprocess.run(command, cwd=folder, env=environment(folder), capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_with_pip(index: Path, tmp_path: Path) -> None:
    """Into an environment of its own."""
    venv = tmp_path / "venv"
    install([sys.executable, "-m", "venv", venv], tmp_path)
    install([venv / "bin" / "pip", "install", "--no-index", "--find-links", index, "policyeng"], tmp_path)
    check([venv / "bin" / "policyeng"], tmp_path)
    # As from any folder: a checkout next to a script would count as installed.
    script = shutil.copy(ROOT / "tests" / "every_command.py", tmp_path)
    sample = shutil.copy(ROOT / "samples" / "workspaces" / "exempted.json", tmp_path)
    ran = subprocess.run(
        [venv / "bin" / "python", script, "", Path(sample).name],
        cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    require_hints(json.loads(ran.stdout))


def test_with_pipx(index: Path, tmp_path: Path) -> None:
    """As a tool of the user."""
    pipx = program("pipx")
    pip_args = f"--no-index --find-links {index}"
    install([pipx, "install", "--python", sys.executable, f"--pip-args={pip_args}", "policyeng"], tmp_path)
    check([tmp_path / "bin" / "policyeng"], tmp_path)


def test_with_uv(index: Path, tmp_path: Path) -> None:
    """As a tool of the user."""
    install([program("uv"), "tool", "install", "--no-index", "--find-links", index, "policyeng"], tmp_path)
    check([tmp_path / "bin" / "policyeng"], tmp_path)


def test_with_uvx(index: Path, tmp_path: Path) -> None:
    """For one run, from the file of the wheel."""
    (wheel,) = index.glob("policyeng-*.whl")
    check([program("uvx"), "--no-index", "--find-links", index, "--from", wheel, "policyeng"], tmp_path)
