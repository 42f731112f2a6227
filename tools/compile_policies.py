"""Compile the built-in policies for a wheel: their headers and analyses, and code for each supported Python.

    python tools/compile_policies.py build/lib/policyeng/compiled

Building a wheel runs it. A version of Python has code if it is installed here: only its standard library is used. With
the variable `POLICYENG_COMPILE_FOR=every`, as for a release, a version that is not installed is an error.
"""

from __future__ import annotations

import argparse
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from policyeng import cache, prebuilt  # noqa: E402  # of this checkout
from policyeng.bundle import load_bundle, loader, prebuilt_bundle  # noqa: E402  # as above
from policyeng.engines import embedded  # noqa: E402  # as above
from policyeng.rego.assembly import __file__ as assembly  # noqa: E402  # as above

VARIABLE = "POLICYENG_COMPILE_FOR"


def supported_versions() -> list[str]:
    """Return the versions of Python that the project names, such as `3.11`."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return re.findall(r"Programming Language :: Python :: (3\.\d+)", project)


def find_python(version: str) -> str | None:
    """Return an interpreter of a version: this one, one on the path, or one of pyenv or uv; None without any."""
    for program in _candidates(version):
        shown = "import sys; print(*sys.version_info[:2], sep='.')"
        try:
            ran = subprocess.run([program, "-I", "-S", "-c", shown], capture_output=True, text=True, check=False)
        except OSError:
            continue
        if ran.returncode == 0 and ran.stdout.strip() == version:
            return program
    return None


def _candidates(version: str) -> Iterator[str]:
    yield sys.executable
    if program := shutil.which(f"python{version}"):
        yield program
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from map(str, sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}")))
    if uv := shutil.which("uv"):
        ran = subprocess.run(
            [uv, "python", "find", "--no-python-downloads", version], capture_output=True, text=True, check=False
        )
        yield from ran.stdout.splitlines()[:1]


def compile_policies(folder: Path, versions: dict[str, str]) -> None:
    """Write every form of the built-in policies into a folder.

    Args:
        folder: does not exist, or has the result of another build, which is replaced.
        versions: interpreters by version.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with cache.switched_off():
        bundle = load_bundle()
        analyses = loader.work_out(bundle)
        generated = embedded.generate(bundle)
        bundle_parts = prebuilt_bundle.write(folder, bundle, analyses)
    (origin,) = bundle.origins
    modules = {path: origin.tree[PurePosixPath(path)] for path in prebuilt_bundle.module_code(bundle).values()}
    # Other versions of Python have none of our classes.
    programs = [([tuple(module) for module in program.modules], program.written, program.rest) for program in generated]
    request = pickle.dumps((modules, programs), protocol=5)
    program_parts = embedded.prebuilt_parts(bundle)
    for program in versions.values():
        ran = subprocess.run([program, "-I", "-S", "-B", assembly], input=request, stdout=subprocess.PIPE, check=True)
        tag, magic, code, compiled = pickle.loads(ran.stdout)  # noqa: S301  # of the process that this one started
        python = prebuilt.PythonVersion(tag, magic)
        prebuilt.write(folder, "python", bundle_parts, pickle.dumps(code, protocol=5), python)
        for form, content in zip(("program", "handled"), compiled, strict=True):
            prebuilt.write(folder, form, program_parts, content, python)


def main() -> int:
    """Compile them, and print for which versions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    found = {version: find_python(version) for version in supported_versions()}
    missing = [version for version, program in found.items() if program is None]
    if missing and os.environ.get(VARIABLE) == "every":
        print(f"{VARIABLE} asks for Python {' and '.join(missing)}, which is not installed", file=sys.stderr)
        return 1
    versions = {version: program for version, program in found.items() if program is not None}
    compile_policies(folder, versions)
    print(f"compiled the built-in policies for Python {', '.join(versions)}")
    for version in missing:
        print(f"there is no Python {version} here: its first run compiles the policies", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
