"""Small estates for tests of audits: written to a folder, audited, changed, audited again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
from msgspec.structs import replace

from policyeng.audit.records import AuditRun
from policyeng.audit.runner import run_estate
from policyeng.audit.store import open_store
from policyeng.audit.store.store import Store
from policyeng.bundle import Bundle, load_bundle
from policyeng.configuration import Settings
from policyeng.configuration.settings import EstateSettings
from policyeng.context import EvaluationSetup
from policyeng.models import Exemption, JsonObject
from tests.bundles import deny_when, rego, workspace, write

#: The clock of the first audit; each further one is a day later unless stated otherwise.
START = datetime(2026, 6, 1, tzinfo=UTC)

#: Two policies: `T-A-1` (high) denies `x` = 1, `T-B-1` (low) denies an `owner` that is absent and takes no x of text.
POLICIES: Mapping[str, str] = {
    "area/x/x.rego": rego("x", deny_when("input.resource.properties.x == 1")),
    "area/owned/owned.rego": rego(
        "owned", deny_when("not input.resource.properties.owner"), identity="T-B-1", severity="low"
    ),
}

#: By part, what its workspaces have as `x`: part `a` fails, `b` and `c` do not.
PARTS: Mapping[str, Mapping[str, int]] = {"a": {"one": 1, "two": 0}, "b": {"three": 0}, "c": {"four": 0}}


def policies(folder: Path, files: Mapping[str, str] = POLICIES) -> Bundle:
    """A bundle that is written to a folder and read."""
    return load_bundle(write(folder, dict(files)))


def setup_of(bundle: Bundle, *, exemptions: Sequence[Exemption] = (), **settings: object) -> EvaluationSetup:
    """The setup: a bundle and exemptions, no parameters."""
    return EvaluationSetup(bundle, exemptions, {}, Settings.model_validate(settings))


def exemption(resource: str, policy: str = "T-A-1", *, days: int = 30) -> Exemption:
    """An exemption of a workspace by its name, from the start on."""
    return Exemption(
        id=f"E-{resource}",
        policy=policy,
        scope=workspace(resource)["id"],
        category="waiver",
        reason="r",
        owner="a",
        approved_by="b",
        created_at=START,
        expires_at=START + timedelta(days=days),
    )


class Audited:
    """An estate in a folder and its audits.

    Attributes:
        folder: of everything; the parts are `estate/NAME.json`.
        store: open; `close` closes it.
        held: the setup of the audits; replace it between audits.

    With `fresh=False` the estate is taken as it lies there.
    """

    def __init__(
        self,
        folder: Path,
        url: str = "",
        *,
        name: str = "production",
        setup: EvaluationSetup | None = None,
        fresh: bool = True,
    ) -> None:
        self.folder = folder
        self.url = url or f"sqlite:///{folder}/audits.db"
        self.held = setup or setup_of(policies(folder / "policies"))
        self.store: Store = open_store(self.url, create=True)
        self.estate = EstateSettings(name=name, inputs=(str(folder / "estate"),))
        self._audits = 0
        for part, workspaces in PARTS.items() if fresh else ():
            self.put(part, {each: {"x": x, "owner": "o"} for each, x in workspaces.items()})

    def put(self, part: str, workspaces: Mapping[str, JsonObject]) -> Path:
        """Write a part: by the names of its workspaces, their properties."""
        resources = [workspace(name, **properties) for name, properties in workspaces.items()]
        return self.write(part, orjson.dumps({"snapshotVersion": 1, "resources": resources}))

    def write(self, part: str, content: bytes) -> Path:
        """Write the file of a part as it is."""
        path = self.folder / "estate" / f"{part}.json"
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(content)
        return path

    def drop(self, part: str) -> None:
        """Take a part away."""
        (self.folder / "estate" / f"{part}.json").unlink()

    def audit(self, *, as_of: datetime | None = None, jobs: int = 1, full: bool = False, **changes: object) -> AuditRun:
        """Audit the estate once; `changes` are other values of the setup."""
        at = as_of or START + timedelta(days=self._audits)
        self._audits += 1
        setup = replace(self.held, **changes)
        return run_estate(self.store, self.estate, setup, setup.options(at), jobs=jobs, full=full)

    def close(self) -> None:
        """Close the store."""
        self.store.close()
