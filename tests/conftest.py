"""What many tests share: the repository, the reference files next to it, the built-in bundle and the baselines."""

from __future__ import annotations

import gc
import json
import os
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import typer
from hypothesis import HealthCheck, settings

from policyeng.bundle import Bundle, load_bundle
from policyeng.bundle.cases import Baselines
from tests.bundles import workspace, write
from tests.databases import postgres, store_url
from tests.effort import effort
from tests.lending import compile_only_named_libraries

__all__ = ["postgres", "store_url"]

ROOT = Path(__file__).resolve().parents[1]

# How long an example takes depends on what else the machine does.
settings.register_profile(
    "any-machine", deadline=None, max_examples=effort(30, 100), suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any-machine")

#: The suite neither reads nor fills the cache of whoever runs it; its processes share one.
if "PYTEST_XDIST_WORKER" not in os.environ:
    CACHE = TemporaryDirectory(prefix="policyeng-tests-")
    os.environ["POLICYENG_CACHE_DIR"] = CACHE.name

#: Building the commands takes longer than most runs that tests make in this process, and always gives the same.
typer.main.get_command = cache(typer.main.get_command)
compile_only_named_libraries()

# The default format of reports depends on the build agent that runs the tests.
for _agent in ("GITHUB_ACTIONS", "TF_BUILD"):
    os.environ.pop(_agent, None)


def pytest_collection_finish() -> None:
    """Leave what is there when all tests are collected out of every garbage collection: it stays until the end."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the repository."""
    return ROOT


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, so that files have short names."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a bundle of one policy and a snapshot, as a server reads them."""
    from tests.servers import POLICY

    state = {"snapshotVersion": 1, "resources": [workspace("there")]}
    return write(tmp_path, {"bundle/area/limit.rego": POLICY, "state.json": json.dumps(state)})


@pytest.fixture(scope="session")
def bundle() -> Bundle:
    """The built-in policies."""
    return load_bundle()


@pytest.fixture(scope="session")
def baselines() -> Baselines:
    """The compliant estate that samples are made of."""
    return Baselines.read(ROOT / "samples" / "baselines")


@pytest.fixture(scope="session")
def opa() -> Path:
    """The pinned OPA that `make test` builds; where a test run is meant to be whole, its absence is a failure."""
    found = ROOT / ".tools" / "bin" / "opa"
    if not found.is_file():
        missing = "OPA is not built: run `make .tools/bin/opa`"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    return found
