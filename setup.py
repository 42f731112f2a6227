"""Build of the wheel, with the built-in policies compiled; everything else is in `pyproject.toml`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithCompiledPolicies(build_py):
    """Copies the packages and compiles the policies; an editable installation has none, and uses the cache."""

    def run(self) -> None:
        """Build."""
        super().run()
        if not self.editable_mode:
            tool = Path(__file__).with_name("tools") / "compile_policies.py"
            # The hashes of texts do not vary, so that two builds give the same.
            command = [sys.executable, tool, Path(self.build_lib) / "policyeng" / "compiled"]
            subprocess.run(command, check=True, env=os.environ | {"PYTHONHASHSEED": "0"})  # noqa: S603  # a file of ours


setup(cmdclass={"build_py": BuildWithCompiledPolicies})
