"""Gatekeeper's templates and constraints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from policyeng import evaluate
from policyeng.bundle import load_bundle
from policyeng.errors import BundleError
from policyeng.models import Outcome, Severity
from policyeng.sources import load_snapshot
from tests.bundles import write
from tests.conftest_binary import AS_OF

COLLECTION = Path(__file__).parent / "collections" / "gatekeeper"
TEMPLATE = """apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
spec:
  crd: {spec: {names: {kind: P}}}
  targets:
    - rego: |
        package p
        violation[{"msg": "no"}] { input.review.object.bad; input.parameters.active }
"""


def constraint(name: str, spec: str) -> str:
    """A constraint with a spec in flow style."""
    return f"apiVersion: constraints.gatekeeper.sh/v1beta1\nkind: P\nmetadata: {{name: {name}}}\nspec: {spec}\n"


def evaluated(folder: Path, document: str) -> list[tuple[str, str]]:
    """Policies and outcomes over one document."""
    write(folder / "in", {"x.json": document})
    snapshot = load_snapshot(folder / "in/x.json", documents=True, resources=False)
    evaluation = evaluate(load_bundle(folder / "p"), snapshot, as_of=AS_OF)
    return [(finding.policy, str(finding.outcome)) for finding in evaluation.findings]


def test_a_directory_in_the_style_of_the_library_is_evaluated() -> None:
    """Templates with libraries, samples and sources next to them; what the cluster fills leaves a policy unknown."""
    snapshot = load_snapshot(COLLECTION / "inputs/objects.yaml", documents=True, resources=False)
    evaluation = evaluate(load_bundle(COLLECTION / "policy"), snapshot, as_of=AS_OF)

    found = [
        (finding.policy, finding.resource.rpartition("/")[2], denial.msg, denial.actual)
        for finding in evaluation.findings
        for denial in finding.denials
    ]
    assert found == [
        ("hostnamespace.violation", "objects.yaml#2", "shared shares a namespace of its host", {"details": {}}),
        (
            "requiredowner.violation.namespaces-have-owners",
            "objects.yaml",
            'Namespace open needs the labels {"owner"}',
            {"details": {"missing": ["owner"]}},
        ),
        (
            "requiredowner.violation.pods-have-apps",
            "objects.yaml#2",
            'Pod shared needs the labels {"owner"}',
            {"details": {"missing": ["owner"]}},
        ),
    ]
    unknown = [finding for finding in evaluation.findings if finding.unknowns]
    assert {finding.policy for finding in unknown} == {"uniquehost.violation"}
    assert "Gatekeeper fills from the cluster" in unknown[0].unknowns[0].msg


def test_inventory_is_taken_from_data(tmp_path: Path) -> None:
    """With `--data` the policy that needs it is evaluated."""
    ingress = {"other": {"spec": {"rules": [{"host": "a.example"}]}}}
    write(tmp_path, {"x.json": json.dumps({"inventory": {"namespace": {"n": {"v1": {"Ingress": ingress}}}}})})
    bundle = load_bundle(COLLECTION / "policy", data=[tmp_path])
    snapshot = load_snapshot(COLLECTION / "inputs/objects.yaml", documents=True, resources=False)

    findings = evaluate(bundle, snapshot, as_of=AS_OF).findings
    failed = [finding.resource for finding in findings if finding.policy.startswith("unique") and finding.denials]

    assert [name.rpartition("#")[2] for name in failed] == ["3"]


def test_constraints_give_kinds_parameters_and_whether_they_deny(tmp_path: Path) -> None:
    """Each constraint is a policy of its own; two of one name are distinguished by their folders."""
    files = {
        "t/template.yaml": TEMPLATE,
        "t/samples/a/constraint.yaml": constraint(
            "same", "{match: {kinds: [{kinds: [X]}]}, parameters: {active: true}}"
        ),
        "t/samples/b/constraint.yaml": constraint("same", "{parameters: {active: true}, enforcementAction: dryrun}"),
        "t/samples/c/constraint.yaml": constraint("none", '{match: {kinds: [{kinds: ["*"]}]}}'),
        "elsewhere/constraint.yaml": constraint("far", "{}"),
    }
    write(tmp_path / "p", files)

    assert evaluated(tmp_path, '{"kind": "X", "bad": 1}') == [
        ("p.violation.far", "pass"),
        ("p.violation.none", "pass"),
        ("p.violation.same@a", "fail"),
        ("p.violation.same@b", "fail"),
    ]
    assert [policy for policy, _ in evaluated(tmp_path, '{"kind": "Y", "bad": 1}')] == [
        "p.violation.far",
        "p.violation.none",
        "p.violation.same@b",
    ]
    severities = {policy.id: policy.header.severity for policy in load_bundle(tmp_path / "p").policies}
    assert severities["p.violation.same@b"] is Severity.INFO


def test_without_a_constraint_everything_is_evaluated_without_parameters(tmp_path: Path) -> None:
    """The template alone is a policy; parameters can be configured."""
    write(tmp_path / "p", {"template.yaml": TEMPLATE})
    assert evaluated(tmp_path, '{"bad": 1}') == [("p.violation", "pass")]

    snapshot = load_snapshot(tmp_path / "in/x.json", documents=True, resources=False)
    given = {"p.violation": {"active": True}}
    evaluation = evaluate(load_bundle(tmp_path / "p"), snapshot, as_of=AS_OF, parameters=given)
    assert evaluation.exit_code == 1


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"template.yaml": "kind: ConstraintTemplate\nspec: {targets: [{code: [{engine: CEL}]}]}"},
            "0 targets with Rego",
        ),
        ({"template.yaml": "kind: ConstraintTemplate"}, "0 targets with Rego"),
        ({"template.yaml": TEMPLATE, "constraint.yaml": constraint("x", "{match: 1}")}, "not well formed"),
        (
            {
                "a/template.yaml": TEMPLATE + '      libs: ["package lib.x\\na := 1"]\n',
                "b/template.yaml": TEMPLATE.replace("package p", "package q")
                + '      libs: ["package lib.x\\na := 2"]\n',
            },
            "a different library",
        ),
        ({"template.yaml": TEMPLATE, "constraint.yaml": constraint("off", "{}")}, "not well formed"),
        ({"template.yaml": TEMPLATE, "x.yaml": constraint("x", "{}").replace(": P", ": Q")}, "`Q`, which no template"),
        ({"x.yml": constraint("x", "{}"), "a.rego": "package a\ndeny contains 1 if false"}, "`P`, which no template"),
        ({"template.yaml": TEMPLATE.replace("violation[", "deny[")}, "no rule `violation`"),
        ({"template.yaml": TEMPLATE + "      libs: [1]\n"}, "not a list of modules"),
    ],
)
def test_what_is_not_well_formed_is_refused(tmp_path: Path, files: dict[str, str], message: str) -> None:
    """With the file that is wrong."""
    with pytest.raises(BundleError, match=message):
        load_bundle(write(tmp_path, files))


def test_other_files_of_that_name_are_left_alone(tmp_path: Path) -> None:
    """A `template.yaml` of something else is no policy and no fault."""
    write(tmp_path, {"template.yaml": "kind: Template", "a.rego": "package a\ndeny contains 1 if false"})
    assert len(load_bundle(tmp_path).policies) == 1


@pytest.mark.parametrize(
    "rule",
    [
        'violation[{"msg": "no"}] { object.get(input, ["review", "object", "bad"], false) }',
        'violation[{"msg": "no"}] { x := input; x.review.object.bad }',
        'violation[{"msg": "no"}] { bad(input) }\n        bad(x) { x.review.object.bad }',
        'violation[{"msg": "no"}] { input.review.object.bad }\n        other { input.kind }',
        'violation[{"msg": "no"}] { false }\n        deny["no"] { input.review.object.bad }',
    ],
)
def test_the_rules_of_a_template_always_get_a_review(tmp_path: Path, rule: str) -> None:
    """Whatever their text looks at, whatever the file is called, and also where the source lies next to it."""
    source = TEMPLATE.partition("        violation")[0]
    write(tmp_path / "p", {"named_by_us.yml": f"{source}        {rule}\n"})
    write(tmp_path / "p", {"src.rego": f"package p\n{rule}".replace("\n        ", "\n")})

    assert "fail" in {outcome for _, outcome in evaluated(tmp_path, '{"bad": 1}')}


def test_files_are_known_by_their_content(tmp_path: Path) -> None:
    """Several documents in a file, a `List`, any name; other YAML is not read, whatever is wrong with it."""
    other = TEMPLATE.replace("package p", "package q").replace("kind: P", "kind: Q")
    of_other = constraint("b", "{parameters: {active: true}}").replace("kind: P", "kind: Q")
    listed = "kind: List\nitems: [{apiVersion: constraints.gatekeeper.sh/v1beta1, kind: P, metadata: {name: c}}]\n"
    files = {
        "all.yaml": "---\n".join([TEMPLATE, other, constraint("a", "{parameters: {active: true}}"), of_other, listed]),
        "values.yaml": "{{ not yaml",
        "tests/constraint-of-a-test.yaml": constraint("z", "{}"),
    }
    write(tmp_path / "p", files)

    assert evaluated(tmp_path, '{"bad": 1}') == [
        ("p.violation.a", "fail"),
        ("p.violation.c", "pass"),
        ("q.violation.b", "fail"),
    ]


#: What of `match` applies to which document; `None` where it does not apply.
POD: dict[str, object] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web-1", "namespace": "prod-eu", "labels": {"app": "a"}},
}
NO_NAMESPACE = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-1"}}
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "prod-eu"}}
NAMESPACE: dict[str, object] = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "prod-eu", "labels": {"team": "ml"}},
}
ROLE = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"}}
CUSTOM = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}}
MATCHES = [
    ({}, POD, True),
    ({"kinds": [{"apiGroups": [""], "kinds": ["Pod"]}]}, POD, True),
    ({"kinds": [{"apiGroups": ["apps"], "kinds": ["Pod"]}]}, POD, False),
    ({"kinds": [{"apiGroups": ["*"], "kinds": ["*"]}]}, DEPLOYMENT, True),
    ({"kinds": [{"apiGroups": ["apps"], "kinds": ["*"]}]}, POD, False),
    ({"kinds": [{"apiGroups": ["apps"]}]}, DEPLOYMENT, True),
    ({"kinds": [{"kinds": ["Pod"]}, {"apiGroups": ["apps"], "kinds": ["Deployment"]}]}, DEPLOYMENT, True),
    ({"namespaces": ["prod-eu"]}, POD, True),
    ({"namespaces": ["prod-*"]}, POD, True),
    ({"namespaces": ["*-eu"]}, POD, True),
    ({"namespaces": ["*od-*"]}, POD, True),
    ({"namespaces": ["prod"]}, POD, False),
    ({"namespaces": ["prod-eu"]}, NAMESPACE, True),
    ({"namespaces": ["other"]}, NAMESPACE, False),
    ({"namespaces": ["other"]}, ROLE, True),
    ({"namespaces": ["other"]}, NO_NAMESPACE, True),
    ({"excludedNamespaces": ["prod-eu"]}, POD, False),
    ({"excludedNamespaces": ["kube-*", "prod-*"]}, POD, False),
    ({"excludedNamespaces": ["prod"]}, POD, True),
    ({"excludedNamespaces": ["*"]}, NO_NAMESPACE, True),
    ({"excludedNamespaces": ["prod-eu"]}, NAMESPACE, False),
    ({"namespaces": ["prod-*"], "excludedNamespaces": ["prod-eu"]}, POD, False),
    ({"scope": "Cluster"}, POD, False),
    ({"scope": "Cluster"}, ROLE, True),
    ({"scope": "Cluster"}, NAMESPACE, True),
    ({"scope": "Namespaced"}, POD, True),
    ({"scope": "Namespaced"}, NO_NAMESPACE, True),
    ({"scope": "Namespaced"}, ROLE, False),
    ({"scope": "Namespaced"}, CUSTOM, True),
    ({"scope": "*"}, ROLE, True),
    ({"name": "web-*"}, POD, True),
    ({"name": "web"}, POD, False),
    ({"labelSelector": {"matchLabels": {"app": "a"}}}, POD, True),
    ({"labelSelector": {"matchLabels": {"app": "b"}}}, POD, False),
    ({"labelSelector": {"matchLabels": {"app": "a"}}}, NO_NAMESPACE, False),
    ({"labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}]}}, POD, True),
    ({"labelSelector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["a"]}]}}, POD, False),
    ({"labelSelector": {"matchExpressions": [{"key": "x", "operator": "NotIn", "values": ["a"]}]}}, POD, True),
    ({"labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}, POD, True),
    ({"labelSelector": {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}}, POD, False),
    ({"namespaceSelector": {"matchLabels": {"team": "ml"}}}, NAMESPACE, True),
    ({"namespaceSelector": {"matchLabels": {"team": "x"}}}, NAMESPACE, False),
    ({"namespaceSelector": {"matchLabels": {"team": "x"}}}, ROLE, True),
    ({"namespaceSelector": {"matchLabels": {"team": "ml"}}}, POD, None),
]


@pytest.mark.parametrize(("match", "document", "applies"), MATCHES)
def test_a_constraint_applies_to_what_it_matches(
    match: dict[str, object], document: dict[str, object], applies: bool | None, tmp_path: Path
) -> None:
    """As `gator` applies it; the labels of a namespace that is not among the inputs are not known."""
    files = {"t.yaml": TEMPLATE, "c.yaml": constraint("one", json.dumps({"match": match, "parameters": {"active": 1}}))}
    write(tmp_path / "p", files)

    outcomes = {True: ["fail"], False: [], None: ["unknown"]}
    assert outcomes_of_documents(tmp_path, [{**document, "bad": 1}]) == outcomes[applies]


def outcomes_of_documents(folder: Path, documents: list[dict[str, object]]) -> list[str]:
    """The outcomes of documents that are bad; others pass."""
    write(folder / "in", {"x.yaml": "\n---\n".join(map(json.dumps, documents))})
    snapshot = load_snapshot(folder / "in/x.yaml", documents=True, resources=False)
    findings = evaluate(load_bundle(folder / "p"), snapshot, as_of=AS_OF).findings
    return [str(finding.outcome) for finding in findings if finding.outcome is not Outcome.PASS]


@pytest.mark.parametrize(("label", "outcome"), [("ml", ["fail"]), ("x", [])])
def test_a_namespace_among_the_inputs_gives_its_labels(label: str, outcome: list[str], tmp_path: Path) -> None:
    """Then it is decided whether a constraint applies to what is in it."""
    spec = {"match": {"namespaceSelector": {"matchLabels": {"team": label}}}, "parameters": {"active": 1}}
    write(tmp_path / "p", {"t.yaml": TEMPLATE, "c.yaml": constraint("one", json.dumps(spec))})

    assert outcomes_of_documents(tmp_path, [{**POD, "bad": 1}, NAMESPACE]) == outcome


@pytest.mark.parametrize(
    ("match", "message"),
    [
        ({"excludedNamespace": ["a"]}, "`excludedNamespace` of `match` is not known"),
        ({"scope": "namespaced"}, "write one of \\*, Cluster, Namespaced"),
        ({"namespaces": "a"}, "`namespaces` is not a list of names"),
        (
            {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "in", "values": ["a"]}]}},
            "one of In, NotIn",
        ),
        ({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}, "wrong number of values"),
        ({"labelSelector": ["a"]}, "is not a selector"),
        ({"kinds": {"kinds": ["Pod"]}}, "`kinds` is not a list"),
    ],
)
def test_a_match_that_is_not_well_formed_is_refused(match: dict[str, object], message: str, tmp_path: Path) -> None:
    """A misspelt member would match everything."""
    write(tmp_path, {"t.yaml": TEMPLATE, "c.yaml": constraint("one", json.dumps({"match": match}))})

    with pytest.raises(BundleError, match=message):
        load_bundle(tmp_path)
