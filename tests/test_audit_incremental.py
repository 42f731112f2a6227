"""Audits that take over what is still valid have the results of audits that evaluate everything, byte for byte.

`python -m tests.test_audit_incremental COUNT SEED` tries so many courses of audits of random estates.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import orjson
import pytest
from sqlalchemy import select, update

from policyeng.audit import runner
from policyeng.audit.records import AuditRun
from policyeng.audit.runner import run_estate
from policyeng.audit.store import open_store
from policyeng.audit.store.connection import writing
from policyeng.audit.store.integrity import verify
from policyeng.audit.store.store import Store
from policyeng.audit.store.tables import PARTS
from policyeng.bundle import Bundle, load_bundle
from policyeng.configuration import Settings
from policyeng.configuration.settings import EstateSettings
from policyeng.context import EvaluationSetup
from policyeng.models import Exemption, JsonObject
from policyeng.verify.generators.examples import Examples
from tests.audits import Audited, exemption, policies
from tests.bundles import deny_when, rego, workspace
from tests.effort import effort

START = datetime(2026, 6, 1, tzinfo=UTC)
DAY = timedelta(days=1)
PARTS_OF = ["a.json", "b.json", "c.json"]
_SCHEMAS = "https://azuremlschemas.azureedge.net/latest"
#: How many seconds pass between audits, as powers of ten: from some minutes to some years.
_PASSING = (2.0, 8.0)


@pytest.fixture
def audited(tmp_path: Path):  # type: ignore[no-untyped-def]  # a generator of `Audited`
    """An estate of three parts."""
    made = Audited(tmp_path)
    yield made
    made.close()


@pytest.fixture
def evaluated_files(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the parts that were evaluated, in order."""
    return counted(monkeypatch.setattr)


def counted(put: Callable[[object, str, object], None]) -> list[str]:
    """Have the names of parts noted when they are evaluated."""
    names: list[str] = []
    evaluate = runner.read_and_evaluate

    def noting(source, *given):  # type: ignore[no-untyped-def]  # as `read_and_evaluate`
        names.append(source.source.name + " in part" if isinstance(source, runner.Resumed) else source.name)
        return evaluate(source, *given)

    put(runner, "read_and_evaluate", noting)
    return names


def test_what_did_not_change_is_not_evaluated_again(audited: Audited, evaluated_files: list[str]) -> None:
    """Nothing of it is read but bytes; the run has the results of the first one."""
    first, second = audited.audit(), audited.audit()

    assert evaluated_files == ["a.json", "b.json", "c.json"]
    assert (second.summary, second.exit_code, second.parts) == (first.summary, first.exit_code, first.parts)
    assert [part.snapshot for part in audited.store.parts(second)] == [
        part.snapshot for part in audited.store.parts(first)
    ]
    assert {audited.store.evaluation(part).as_of for part in audited.store.parts(second)} == {second.as_of}


def test_only_what_changed_is_evaluated_again(audited: Audited, evaluated_files: list[str]) -> None:
    """Also if it is as old and as long as before; and what comes or goes."""
    audited.audit()
    file = audited.folder / "estate" / "b.json"
    times = file.stat()
    file.write_bytes(file.read_bytes().replace(b'"x":0', b'"x":1'))
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    audited.put("d", {"five": {"owner": "o"}})
    audited.drop("c")
    del evaluated_files[:]

    run = audited.audit()

    assert evaluated_files == ["b.json", "d.json"]
    assert run.summary.fail == 2
    assert [span.part for span in audited.store.spans("production") if span.until is None] == ["a.json", "b.json"]


@pytest.mark.parametrize(
    "change",
    [
        lambda audited: {"bundle": policies(audited.folder / "others", _others())},
        lambda _: {"parameters": {"T-A-1": {}}},
        lambda _: {"exemptions": [exemption("one")]},
        lambda _: {"settings": Settings.model_validate({"fail_on": "critical"})},
        lambda _: {"settings": Settings.model_validate({"strict_unknown": True})},
    ],
    ids=["policies", "parameters", "exemptions", "fail_on", "strict_unknown"],
)
def test_everything_is_evaluated_again_under_another_rule(
    audited: Audited, evaluated_files: list[str], change: Callable[[Audited], Mapping[str, object]]
) -> None:
    """The setup is the same for all parts."""
    audited.audit()
    del evaluated_files[:]

    audited.audit(**change(audited))  # type: ignore[arg-type]  # fields of the setup by name

    assert evaluated_files == ["a.json", "b.json", "c.json"]


def _others() -> Mapping[str, str]:
    return {"area/x/x.rego": rego("x", deny_when("input.resource.properties.x == 2"))}


def test_a_policy_that_reads_the_clock_is_evaluated_alone(audited: Audited, evaluated_files: list[str]) -> None:
    """The others are not, at an earlier clock either; what is put together is what evaluating everything gives."""
    audited.held = EvaluationSetup(policies(audited.folder / "dated", _DATED), (), {}, Settings())
    runs = [audited.audit(as_of=START + days * DAY) for days in (0, 1, 2)]

    assert evaluated_files == [*PARTS_OF, *(f"{name} in part" for name in 2 * PARTS_OF)]
    assert [run.summary.fail for run in runs] == [4, 0, 0]
    del evaluated_files[:]

    back = audited.audit(as_of=START)
    audited.audit(as_of=START, full=True)

    assert evaluated_files == [*(f"{name} in part" for name in PARTS_OF), *PARTS_OF]
    assert back.summary == runs[0].summary
    assert runs[2].content == audited.audit(as_of=START + 2 * DAY, full=True).content


def test_policies_that_only_compare_the_clock_are_taken_over_until_it_matters(
    audited: Audited, evaluated_files: list[str]
) -> None:
    """Then they are evaluated alone, at an earlier clock too; whichever way, the stored bytes are the same."""
    bundle = policies(audited.folder / "dated", {"area/b/b.rego": _DATED["area/b/b.rego"]})
    audited.held = EvaluationSetup(bundle, (), {}, Settings())
    edge = datetime(2027, 1, 1, tzinfo=UTC)
    in_parts = [f"{name} in part" for name in PARTS_OF]
    clocks: list[tuple[datetime, list[str]]] = [
        (START, PARTS_OF),
        (START + 200 * DAY, []),
        (edge, []),
        (edge + timedelta(microseconds=1), in_parts),
        (edge + 100 * DAY, []),
        (edge, in_parts),
        (START, []),
        (START - 3000 * DAY, []),
    ]
    found = []
    for clock, evaluated in clocks:
        del evaluated_files[:]
        run = audited.audit(as_of=clock)
        assert evaluated_files == evaluated
        assert run.content == audited.audit(as_of=clock, full=True).content
        found.append(run.summary.fail)

    assert found == [0, 0, 0, 4, 4, 0, 0, 0]
    assert verify(audited.store).faults == []


def test_a_run_of_an_earlier_version_is_not_compared(audited: Audited, evaluated_files: list[str]) -> None:
    """What it stored of a part does not state between which clocks that is valid."""
    audited.audit()
    del evaluated_files[:]
    with writing(audited.store.engine) as connection:
        for row in connection.execute(select(PARTS)).all():
            stated = orjson.loads(row.holding)
            del stated["unchanged"]
            where = (PARTS.c.run == row.run) & (PARTS.c.position == row.position)
            connection.execute(update(PARTS).where(where).values(holding=orjson.dumps(stated).decode()))

    audited.audit()

    assert evaluated_files == PARTS_OF


def test_at_the_same_clock_nothing_is_evaluated_again(audited: Audited, evaluated_files: list[str]) -> None:
    """Nor are problems of exemptions lost, where some policies are evaluated again at every other clock."""
    audited.held = EvaluationSetup(policies(audited.folder / "dated", _DATED), [exemption("nobody")], {}, Settings())
    runs = [audited.audit(as_of=START) for _ in range(2)]

    assert evaluated_files == [*PARTS_OF]
    assert [problem.place for problem in runs[0].problems] == ["exemption E-nobody"]
    assert runs[1].problems == runs[0].problems


def test_an_exemption_that_ends_ends_everywhere(audited: Audited) -> None:
    """Problems of exemptions are those of all parts together, taken over or not."""
    given = [exemption("one", days=3), exemption("four"), exemption("nobody")]

    runs = [audited.audit(as_of=START + days * DAY, exemptions=given) for days in (0, 1, 2, 5)]
    full = audited.audit(as_of=START + 5 * DAY, exemptions=given, full=True)

    problems = [{(problem.place, problem.message) for problem in run.problems} for run in (*runs, full)]
    assert problems[0] == problems[1] == problems[2] != problems[3] == problems[4]
    assert [run.summary.exempt for run in runs] == [1, 1, 1, 0]
    assert runs[-1].content == full.content


def test_evidence_is_listed_only_while_it_is_in_force(audited: Audited, evaluated_files: list[str]) -> None:
    """Of a control, which no policy reads: the part is evaluated again when the evidence begins or lapses."""
    audited.drop("b")
    audited.drop("c")
    entry = {
        "id": "E-1",
        "for": "soc-2:CC6.1",
        "scope": "-",
        "statement": "it was reviewed",
        "givenBy": "anna",
        "givenAt": "2026-06-02T00:00:00Z",
        "expiresAt": "2026-06-04T00:00:00Z",
    }
    resources = [workspace("one", x=0, owner="o")]
    audited.write("a", orjson.dumps({"snapshotVersion": 1, "resources": resources, "evidence": [entry]}))

    listed = []
    for days in range(5):
        run = audited.audit(as_of=START + days * DAY)
        [part] = audited.store.parts(run)
        listed.append([one.id for one in audited.store.evaluation(part).evidence])

    assert listed == [[], ["E-1"], ["E-1"], [], []]
    assert evaluated_files == ["a.json", "a.json in part", "a.json in part"]


def test_files_next_to_a_part_count(tmp_path: Path, evaluated_files: list[str]) -> None:
    """A file that it names, and one that comes to lie where it was looked for."""
    folder = tmp_path / "estate"
    folder.mkdir()
    job = folder / "compute.yml"
    job.write_text(f"$schema: {_SCHEMAS}/amlCompute.schema.json\nname: c\ntype: amlcompute\n")
    estate = EstateSettings(name="e", inputs=(str(job),))
    setup = EvaluationSetup(load_bundle(), (), {}, Settings())
    with open_store(f"sqlite:///{tmp_path}/a.db", create=True) as store:
        for _ in range(2):
            run_estate(store, estate, setup, setup.options(START))
        assert evaluated_files == ["compute.yml"]
        (folder / "workspace.yml").write_text(
            f"$schema: {_SCHEMAS}/workspace.schema.json\nname: w\nlocation: westeurope\n"
        )

        run_estate(store, estate, setup, setup.options(START))

    assert evaluated_files == ["compute.yml", "compute.yml"]


@pytest.mark.slow
def test_several_processes_take_over_too(audited: Audited) -> None:
    """In the order of the parts."""
    audited.audit()
    audited.put("b", {"three": {"x": 1, "owner": "o"}})

    run = audited.audit(jobs=2)
    full = audited.audit(as_of=run.as_of, full=True)

    assert [part.name for part in audited.store.parts(run)] == ["a.json", "b.json", "c.json"]
    assert run.content == full.content


@dataclass
class Course:
    """Audits of one random estate that changes: in one store what is valid is taken over, in the other nothing."""

    folder: Path
    random: Random
    bundles: Sequence[Bundle]
    evaluated_files: list[str]
    clock: datetime = START
    exemptions: list[Exemption] = field(default_factory=list)
    parameters: Mapping[str, JsonObject] = field(default_factory=dict)
    bundle: int = 0
    taken: int = 0

    def step(self, stores: Sequence[Store]) -> None:
        """Change something, audit in both, and compare."""
        self._change()
        setup = EvaluationSetup(self.bundles[self.bundle], tuple(self.exemptions), self.parameters, Settings())
        estate = EstateSettings(name="e", inputs=(str(self.folder / "estate"),))
        runs: list[AuditRun] = []
        for store, full in zip(stores, (False, True), strict=True):
            del self.evaluated_files[:]
            runs.append(run_estate(store, estate, setup, setup.options(self.clock), full=full))
            evaluated = [name for name in self.evaluated_files if not name.endswith(" in part")]
            self.taken += runs[0].parts - len(evaluated) if not full else 0
        documents = [
            run.model_dump(mode="json", exclude={"started_at", "finished_at", "hash", "previous"}) for run in runs
        ]
        assert documents[0] == documents[1]
        kept = [[store.evaluation(part) for part in store.parts(run)] for store, run in zip(stores, runs, strict=True)]
        assert kept[0] == kept[1]
        spans = [list(store.spans("e")) for store in stores]
        assert spans[0] == spans[1]

    def _change(self) -> None:
        random, folder = self.random, self.folder / "estate"
        folder.mkdir(exist_ok=True)
        files = sorted(folder.iterdir())
        if not files:
            for number in range(3):
                self._draw(folder / f"{number}.json")
            return
        if random.random() < 0.8:
            try:
                self.clock += timedelta(seconds=random.choice((1, 1, 1, -1)) * 10 ** random.uniform(*_PASSING))
            except OverflowError:
                self.clock = START
        for file in files:
            if random.random() < 0.15:
                self._draw(file)
        if random.random() < 0.1:
            self._draw(folder / f"{random.randrange(9)}.json")
        if random.random() < 0.1 and len(files) > 1:
            random.choice(files).unlink()
        if random.random() < 0.15:
            self.bundle = random.randrange(len(self.bundles))
        if random.random() < 0.15:
            self.parameters = Examples(self.bundles[0]).parameters(random, {}) if self.bundle == 0 else {}
        if self.bundle:
            self.parameters = {}

    def _draw(self, file: Path) -> None:
        examples = Examples(self.bundles[0])
        example = examples.drawn(self.random, kind=self.random.choice(("plausible", "nearly-compliant", "estate")))
        self.exemptions = [
            *(given for given in self.exemptions if self.random.random() < 0.7),
            *(given.model_copy(update={"id": f"{file.stem}-{given.id}"}) for given in example.exemptions[:2]),
        ]
        self.exemptions = list({given.id: given for given in self.exemptions}.values())
        file.write_bytes(orjson.dumps({"snapshotVersion": 1, **example.document}))


def courses(count: int, seed: int, folder: Path, evaluated_files: list[str], steps: int = 8) -> int:
    """Try courses of audits; how many parts were taken over."""
    folder.mkdir(parents=True, exist_ok=True)
    bundles = [load_bundle(), policies(folder / "policies", _DATED), policies(folder / "aging", _AGING)]
    taken = 0
    for number in range(count):
        inner = folder / str(number)
        inner.mkdir()
        course = Course(inner, Random(f"{seed}/{number}"), bundles, evaluated_files)  # noqa: S311  # nothing here is secret
        with (
            open_store(f"sqlite:///{inner}/some.db", create=True) as some,
            open_store(f"sqlite:///{inner}/all.db", create=True) as whole,
        ):
            for _ in range(steps):
                course.step((some, whole))
        taken += course.taken
    return taken


_AS_OF = "time.parse_rfc3339_ns(input.as_of)"
#: One that declares what it does with the clock, one that does not, one that reads none.
_DATED: Mapping[str, str] = {
    "area/a/a.rego": rego("a", deny_when("input.resource.location == `eastus`"), identity="T-A-1"),
    "area/b/b.rego": rego(
        "b", deny_when(f"{_AS_OF} > time.parse_rfc3339_ns(`2027-01-01T00:00:00Z`)"), identity="T-B-1"
    ),
    "area/c/c.rego": rego("c", deny_when(f"time.weekday({_AS_OF}) == `Monday`"), identity="T-C-1", severity="low"),
}


_AGE = """\
deny contains {"msg": "m", "path": "", "actual": age, "expected": null} if {
	age := floor((time.parse_rfc3339_ns(input.as_of) - time.parse_rfc3339_ns("2026-01-01T00:00:00Z")) / 86400000000000)
}
"""
#: One that reports how old something is, and one that compares a year.
_AGING: Mapping[str, str] = {
    "area/d/d.rego": rego("d", _AGE, identity="T-D-1"),
    "area/b/b.rego": _DATED["area/b/b.rego"],
}


@pytest.mark.slow
def test_courses_of_audits_come_to_the_same(tmp_path: Path, evaluated_files: list[str]) -> None:
    """Random estates, edits, clocks, policies, parameters and exemptions."""
    assert courses(effort(1, 20), 7, tmp_path / "courses", evaluated_files, steps=effort(5, 8)) > 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        number, chosen = int(sys.argv[1]), int(sys.argv[2])
        taken_over = courses(number, chosen, Path(temporary), counted(setattr))
        message = f"{number} courses of audits of seed {chosen} are the same with and without --full"
        sys.stdout.write(f"{message}; {taken_over} parts were taken over\n")
