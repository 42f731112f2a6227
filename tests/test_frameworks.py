"""Frameworks: documents are checked strictly, and a status states what was found and never more."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from policyeng import evaluate
from policyeng.bundle import Bundle, load_bundle
from policyeng.errors import BundleError, UsageError
from policyeng.frameworks import evaluate_framework, framework_of, read_framework
from policyeng.models import ControlResult, ControlStatus, Exemption, FrameworkResult, JsonObject, Snapshot
from tests.bundles import WORKSPACE, deny_when, rego, snapshot, workspace, write
from tests.command import policyeng

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
ROOT = Path(__file__).resolve().parents[1]
#: Policies of the built-in frameworks that the bundle does not have yet.
AWAITED = frozenset[str]()
COUNTS = {
    "cis-azure-foundations-6.0": 65,
    "cis-controls-v8.1": 121,
    "eu-ai-act": 51,
    "hipaa-security-rule": 55,
    "iso-27001-2022": 94,  # the 93 of Annex A, and clause 9.1
    "mcsb-v1": 85,
    "mcsb-v2": 92,
    "nist-800-53-r5": 347,
    "nist-ai-rmf-1.0": 72,
    "pci-dss-4.0.1": 204,
    "soc2-2017": 43,
}
SWITCH = "parameters: {names: {type: array, default: []}}"
FILES = {
    "area/passes/passes.rego": rego("passes", deny_when("false"), identity="T-PASS-1"),
    "area/fails/fails.rego": rego("fails", deny_when("true"), identity="T-FAIL-1"),
    "area/errs/errs.rego": rego("errs", "deny := 3", identity="T-ERR-1"),
    "area/asks/asks.rego": rego(
        "asks",
        deny_when("false") + '\nunknown contains {"msg": "nobody knows the owner", "path": "/x"} if true',
        identity="T-ASK-1",
    ),
    "area/off/off.rego": rego(
        "off",
        deny_when("false") + "\napplies if wanted\n\nwanted if count(input.parameters.names) > 0",
        identity="T-OFF-1",
        more=SWITCH,
    ),
    "area/elsewhere/elsewhere.rego": rego("elsewhere", deny_when("false"), identity="T-ELSE-1").replace(
        "MachineLearningServices/workspaces", "Storage/storageAccounts"
    ),
    "area/declared/declared.rego": rego("declared", "", identity="T-DECL-1", more="evidence: true"),
    "area/reads/reads.rego": rego(
        "reads", deny_when("count(input.snapshot.evidence) == 0"), identity="T-READ-1", severity="low"
    ),
}


def mapped(*policies: str, relevance: str = "direct") -> list[JsonObject]:
    """Mappings to policies."""
    return [{"id": f"T-{name}-1", "basis": "own", "relevance": relevance} for name in policies]


CONTROLS: list[JsonObject] = [
    {"id": "C-FAIL", "title": "t", "domain": "one", "policies": mapped("PASS", "FAIL", "ERR", "ASK")},
    {"id": "C-ERR", "title": "t", "domain": "one", "policies": mapped("PASS", "ERR", "ASK")},
    {"id": "C-ASK", "title": "t", "domain": "one", "policies": mapped("PASS", "ASK")},
    {"id": "C-PASS", "title": "t", "domain": "two", "policies": mapped("PASS", "OFF", "ELSE")},
    {"id": "C-ELSE", "title": "t", "domain": "two", "policies": mapped("ELSE", "OFF")},
    {"id": "C-OFF", "title": "t", "domain": "two", "policies": mapped("OFF")},
    {"id": "C-RELATED", "title": "t", "guidance": "Show it.", "policies": mapped("PASS", relevance="related")},
    {"id": "C-PROCESS", "title": "t", "kind": "process", "guidance": "Show the plan."},
    {"id": "C-EVIDENCE", "title": "t", "policies": mapped("DECL")},
    {"id": "C-READ", "title": "t", "policies": mapped("READ")},
    {"id": "C-NONE", "title": "t", "guidance": "Show it."},
]
DOCUMENT: JsonObject = {"id": "acme-1", "title": "Acme", "version": "1", "source": "us", "controls": CONTROLS}


def evidence(subject: str, **changed: object) -> JsonObject:
    """An active entry of evidence for everything."""
    entry = {"id": f"E-{subject}", "for": subject, "scope": "-", "statement": "s", "givenBy": "anna"}
    return entry | {"givenAt": "2026-01-01T00:00:00Z", "expiresAt": "2026-12-01T00:00:00Z"} | changed


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """The policies of `FILES`."""
    return load_bundle(write(tmp_path_factory.mktemp("bundle"), FILES))


def result(
    bundle: Bundle,
    folder: Path,
    given: Snapshot | None = None,
    exemptions: tuple[Exemption, ...] = (),
    parameters: Mapping[str, JsonObject] | None = None,
    document: JsonObject = DOCUMENT,
) -> FrameworkResult:
    """The result of a framework file for an evaluation of one workspace."""
    path = folder / "acme.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    given = given or snapshot(workspace())
    evaluation = evaluate(bundle, given, as_of=AS_OF, exemptions=exemptions, parameters=parameters)
    return evaluate_framework(read_framework(path, bundle), evaluation, bundle, given, parameters)


def control(found: FrameworkResult, identity: str) -> ControlResult:
    """The control with that id."""
    return next(one for one in found.controls if one.id == identity)


@pytest.mark.parametrize(
    ("identity", "status", "words"),
    [
        ("C-FAIL", "failing", "1 of 4 findings fail"),
        ("C-ERR", "error", "could not be judged"),
        ("C-ASK", "undecided", "1 finding is unknown: nobody knows the owner"),
        (
            "C-PASS",
            "passing",
            "what is checked passes (1 policy, 1 resource); the control asks for more than these check",
        ),
        ("C-ELSE", "not applicable here", "nothing here that it is about"),
        ("C-OFF", "not applicable here", "not configured: set `names` of T-OFF-1"),
        ("C-RELATED", "by hand", "no policy checks this: Show it."),
        ("C-PROCESS", "by hand", "no policy checks this: Show the plan."),
        ("C-EVIDENCE", "by hand", "no policy checks this"),
        ("C-NONE", "not covered", "no policy maps to it"),
    ],
)
def test_each_status(bundle: Bundle, tmp_path: Path, identity: str, status: str, words: str) -> None:
    """The first status that applies, with its words."""
    found = control(result(bundle, tmp_path), identity)

    assert (found.status, found.words) == (status, words)


def exemption(identity: str, expires: str, approver: str) -> Exemption:
    """An exemption for the failing policy."""
    return Exemption(
        id=identity,
        policy="T-FAIL-1",
        scope=WORKSPACE,
        category="waiver",
        reason="r",
        owner="anna",
        approved_by=approver,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        expires_at=datetime.fromisoformat(expires),
    )


def test_a_control_whose_failures_are_all_exempt_is_accepted(bundle: Bundle, tmp_path: Path) -> None:
    """It names the earliest end and who approved it, and never counts as passing."""
    only = {**DOCUMENT, "controls": [{"id": "C", "title": "t", "policies": mapped("FAIL", "PASS")}]}
    found = result(bundle, tmp_path, exemptions=(exemption("X-1", "2026-09-01T00:00:00+00:00", "ben"),), document=only)

    (one,) = found.controls
    assert (one.status, one.words) == ("accepted", "fails, accepted until 2026-09-01 by ben")
    assert (one.findings.fail, one.findings.exempt, one.findings.pass_) == (1, 1, 1)
    assert (found.summary.strict, found.summary.decided) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("scope", "place", "status"),
    [
        ("", "-", "declared"),
        ("", "/subscriptions/s", "declared"),
        ("", "/subscriptions/other", "not covered"),
        ("/subscriptions/s", "/subscriptions/s", "declared"),
        ("/subscriptions/s", WORKSPACE, "not covered"),
    ],
)
def test_evidence_for_a_control_declares_it(
    bundle: Bundle, tmp_path: Path, scope: str, place: str, status: str
) -> None:
    """Evidence counts where no finding does, if its scope covers that of the snapshot."""
    given = snapshot(workspace(), scope=scope, evidence=[evidence("ACME-1:c-none", scope=place)])
    found = control(result(bundle, tmp_path, given), "C-NONE")

    assert found.status == status
    if status == "declared":
        assert found.words == "declared by anna until 2026-12-01, not checked"
        assert [entry.given_by for entry in found.evidence] == ["anna"]


def test_evidence_never_makes_a_control_pass(bundle: Bundle, tmp_path: Path) -> None:
    """A pass that evidence may explain is shown as declared; a failure stays one."""
    entries = [evidence("T-DECL-1"), evidence("T-READ-1"), evidence("acme-1:C-FAIL"), evidence("acme-1:C-PASS")]
    found = result(bundle, tmp_path, snapshot(workspace(), evidence=entries))

    assert [control(found, name).status for name in ("C-EVIDENCE", "C-READ", "C-FAIL", "C-PASS")] == [
        "declared",
        "declared",
        "failing",
        "passing",
    ]
    assert control(found, "C-READ").findings.total == 0


def test_lapsed_evidence_is_a_failure(bundle: Bundle, tmp_path: Path) -> None:
    """A lapse is what a policy found."""
    lapsed = evidence("T-DECL-1", expiresAt="2026-05-01T00:00:00Z")
    assert control(result(bundle, tmp_path, snapshot(workspace(), evidence=[lapsed])), "C-EVIDENCE").status == "failing"


def test_a_configured_policy_counts(bundle: Bundle, tmp_path: Path) -> None:
    """A parameter that is set switches the policy on."""
    found = result(bundle, tmp_path, parameters={"T-OFF-1": {"names": ["x"]}})
    assert control(found, "C-OFF").status == "passing"


def test_scores(bundle: Bundle, tmp_path: Path) -> None:
    """Only passing counts as passing, and only technical controls are in strict and coverage."""
    summary = result(bundle, tmp_path).summary

    assert (summary.controls, summary.technical) == (11, 10)
    assert (summary.strict, summary.decided, summary.coverage) == (10.0, 20.0, 50.0)
    assert summary.domains["one"].decided == 0.0
    assert summary.domains["two"].strict == 33.33
    assert sum(summary.statuses.values()) == 11
    assert list(summary.statuses) == list(ControlStatus)


def test_policies_that_were_not_selected_are_not_evaluated(bundle: Bundle, tmp_path: Path) -> None:
    """What a selection leaves out is reported."""
    fewer = bundle.only(policy for policy in bundle.policies if policy.id != "T-OFF-1")
    found = control(result(fewer, tmp_path), "C-OFF")
    assert found.words == "not evaluated: its policies were not selected"


def document(**changed: object) -> JsonObject:
    """The document of the framework with other keys."""
    return {**DOCUMENT, **changed}


BAD: dict[str, tuple[JsonObject, str]] = {
    "an unknown key": (document(controls=[{"id": "A", "title": "t", "polices": []}]), "did you mean `policies`"),
    "an unknown policy": (
        document(controls=[{"id": "A", "title": "t", "policies": mapped("PAS")}]),
        "control `A` maps to `T-PAS-1`, which is no policy; did you mean `T-PASS-1`",
    ),
    "a duplicate control": (
        document(controls=[{"id": "A", "title": "t"}, {"id": "a", "title": "t"}]),
        "two controls have the id `a`",
    ),
    "a policy twice": (
        document(controls=[{"id": "A", "title": "t", "policies": mapped("PASS", "PASS")}]),
        "maps to `T-PASS-1` twice",
    ),
    "no controls": (document(controls=[]), "`controls`"),
    "an id in capitals": (document(id="Acme"), "lower-case letters"),
    "an unknown basis": (
        document(controls=[{"id": "A", "title": "t", "policies": [{**mapped("PASS")[0], "basis": "guess"}]}]),
        "`basis` is not valid",
    ),
    "no date": (document(date="soon"), "`date`"),
    "no title": ({key: value for key, value in DOCUMENT.items() if key != "title"}, "`title` is missing"),
}


@pytest.mark.parametrize("suffix", ["json", "yaml"])
@pytest.mark.parametrize("case", BAD, ids=list(BAD))
def test_wrong_documents_are_refused(bundle: Bundle, tmp_path: Path, case: str, suffix: str) -> None:
    """With the file and the line, and exit code 3."""
    wrong, message = BAD[case]
    path = tmp_path / f"acme.{suffix}"
    path.write_text(json.dumps(wrong, indent=1), encoding="utf-8")
    with pytest.raises(UsageError) as raised:
        framework_of(bundle, str(path))

    assert raised.value.exit_code == 3
    assert message in str(raised.value)
    assert str(raised.value).startswith(f"{path}:")


def test_unknown_frameworks_are_refused(bundle: Bundle, tmp_path: Path) -> None:
    """With the nearest name, or the file that cannot be read."""
    with pytest.raises(UsageError, match="no framework is called `mcsb-v3`; did you mean `mcsb-v2`"):
        framework_of(bundle, "mcsb-v3")
    with pytest.raises(UsageError, match="cannot be read"):
        framework_of(bundle, str(tmp_path / "none.yaml"))


def test_controls_of_headers_join_those_of_documents(tmp_path: Path) -> None:
    """The union counts, and a mapping in both is an error when the bundle is loaded."""
    header = rego("mine", deny_when("true"), identity="T-MINE-1", more="controls: {acme-1: [C-NONE]}")
    files = {**FILES, "area/mine/mine.rego": header, "frameworks/acme-1/data.json": json.dumps(DOCUMENT)}
    joined = load_bundle(write(tmp_path / "joined", files))
    assert joined.controls["T-MINE-1"] == ("acme-1:C-NONE",)
    (mapping,) = framework_of(joined, "ACME-1").control("c-none").policies
    assert (mapping.id, mapping.basis, mapping.is_direct) == ("T-MINE-1", "own", True)

    both = {**DOCUMENT, "controls": [*CONTROLS[:-1], {**CONTROLS[-1], "policies": mapped("MINE")}]}
    with pytest.raises(BundleError, match="maps it to `acme-1:C-NONE`, and so does the framework"):
        load_bundle(write(tmp_path / "both", {**files, "frameworks/acme-1/data.json": json.dumps(both)}))


def test_built_in_frameworks_have_their_controls() -> None:
    """Every control of the smaller frameworks, and every policy to which one maps exists."""
    built_in = load_bundle()
    assert {name: len(framework_of(built_in, name).controls) for name in built_in.frameworks} == COUNTS
    known = {policy.id for policy in built_in.policies}
    mapped_ids = {
        mapping.id
        for name in built_in.frameworks
        for one in framework_of(built_in, name).controls
        for mapping in one.policies
    }
    assert mapped_ids - known <= AWAITED
    assert not any(policy.header.controls for policy in built_in.policies)


def test_built_in_frameworks_are_those_of_the_tables() -> None:
    """`tools/build_frameworks.py` writes them."""
    import subprocess
    import sys

    ran = subprocess.run(
        [sys.executable, "tools/build_frameworks.py", "--verify"], cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_no_text_has_the_word_compliant() -> None:
    """The word is never used of a control or a framework."""
    places = [*(ROOT / "policies" / "frameworks").rglob("*.json"), *(ROOT / "policyeng" / "frameworks").rglob("*.py")]
    places += [
        ROOT / "policyeng" / "report" / "frameworks.py",
        ROOT / "policyeng" / "report" / "html" / "frameworks.html",
    ]
    assert not [place for place in places if "complian" in place.read_text(encoding="utf-8").lower()]


def test_a_check_reports_the_controls_of_a_framework(tmp_path: Path) -> None:
    """Only the policies with a direct mapping are evaluated, and every format shows the controls."""
    sample = ROOT / "samples" / "workspaces" / "regulated.json"
    outputs = [part for name in ("csv", "html", "markdown", "oscal") for part in ("--output", f"{name}={name}.out")]
    ran = policyeng("check", str(sample), "--framework", "MCSB-V1", "--format", "json", *outputs, folder=tmp_path)
    report = json.loads(ran.stdout)

    assert ran.returncode == 1
    (framework,) = report["frameworks"]
    assert (framework["id"], len(framework["controls"])) == ("mcsb-v1", 85)
    tested = {one["id"] for item in framework["controls"] for one in item["policies"] if one["relevance"] == "direct"}
    assert {finding["policy"] for finding in report["findings"]} <= tested
    (failing,) = (item for item in framework["controls"] if item["id"] == "NS-2")
    assert failing["status"] == "failing"
    texts = {name: (tmp_path / f"{name}.out").read_text(encoding="utf-8") for name in ("csv", "html", "markdown")}
    assert "control,status,basis,passing,failing,unknown,exempt\n" in texts["csv"].replace("\r", "")
    assert "\nmcsb-v1:NS-2,failing,published," in texts["csv"]
    assert all("NS-4" in text and "not covered" in text for text in texts.values())
    assert "complian" not in texts["html"].partition('class="framework"')[2].partition("</section>")[0].lower()


def test_files_and_selections_of_a_check(tmp_path: Path) -> None:
    """A file of the configuration is relative to it, and `--select` narrows; nothing left is an error."""
    sample = str(ROOT / "samples" / "workspaces" / "compliant.json")
    own = {"id": "acme", "title": "A", "version": "1", "source": "us", "controls": [{"id": "A", "title": "t"}]}
    mapping = {"id": "AML-NET-001", "basis": "own", "relevance": "direct"}
    own["controls"] = [{"id": "A", "title": "t", "policies": [mapping]}]
    write(tmp_path, {"conf/acme.json": json.dumps(own), "conf/policyeng.toml": 'frameworks = ["acme.json"]'})
    ran = policyeng("check", sample, "--config", "conf/policyeng.toml", "--format", "json", folder=tmp_path)
    assert {finding["policy"] for finding in json.loads(ran.stdout)["findings"]} == {"AML-NET-001"}

    none = policyeng("check", sample, "--framework", "mcsb-v1", "--select", "AML-COST-102", folder=tmp_path)
    assert (none.returncode, "no selected policy tests a control of `mcsb-v1`" in none.stderr) == (3, True)
    some = policyeng("check", sample, "--select", "nist-800-53-r5 sc-12", "--format", "json", folder=tmp_path)
    assert {finding["policy"] for finding in json.loads(some.stdout)["findings"]} <= {"AML-ENC-001"}
    untested = policyeng("check", sample, "--select", "mcsb-v1:NS-9", folder=tmp_path)
    assert (untested.returncode, "no policy tests the control `mcsb-v1:NS-9`" in untested.stderr) == (3, True)


def test_frameworks_are_listed_and_shown() -> None:
    """As text and as JSON, one control alone, and with the nearest id for one that there is not."""
    listed = json.loads(policyeng("frameworks", "list", "--format", "json").stdout)
    assert {one["id"]: one["controls"] for one in listed} == COUNTS
    shown = json.loads(policyeng("frameworks", "show", "mcsb-v1", "ns-2", "--format", "json").stdout)
    assert shown["id"] == "NS-2"
    text = policyeng("frameworks", "show", "mcsb-v1", "NS-4").stdout
    assert "Show the network diagram" in text
    assert "No policy maps to it." in text
    wrong = policyeng("frameworks", "show", "mcsb-v1", "NS-99")
    assert (wrong.returncode, "`mcsb-v1` has no control `NS-99`; did you mean" in wrong.stderr) == (3, True)


def test_pages_show_controls_with_their_basis() -> None:
    """A policy without controls reports it."""
    assert "mcsb-v1 NS-2 (published)" in policyeng("policies", "show", "AML-NET-001", "--format", "markdown").stdout
    cost = policyeng("policies", "show", "AML-COST-102").stdout
    assert "maps to no control of the frameworks shipped" in cost


def test_policies_that_are_not_configured_are_listed_so(tmp_path: Path) -> None:
    """With the parameters to set, until the configuration sets one."""
    line = next(one for one in policyeng("policies", "list").stdout.splitlines() if one.startswith("AML-NET-008"))
    assert line.endswith("(not configured: set `required`)")
    write(tmp_path, {"policyeng.toml": '[parameters."AML-NET-008"]\nrequired = true\n'})
    listed = policyeng("policies", "list", "--select", "AML-NET-008", folder=tmp_path).stdout
    assert "not configured" not in listed
