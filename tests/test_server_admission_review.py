"""The Kubernetes webhook as the API server sees it: a review in, a review out, and nothing allowed by mistake."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

import policyeng
from policyeng.admission.changes import apply_changes
from policyeng.bundle import Bundle, load_bundle
from policyeng.errors import EngineError, InputError
from policyeng.models import Blame, Change, Decision, JsonObject, Snapshot
from policyeng.server.admission_review import review
from policyeng.server.schemas import AdmissionReviewAnswer
from policyeng.sources.kubernetes.objects import KINDS
from policyeng.sources.kubernetes.single_object import BesideSnapshot
from tests.bundles import rego, write
from tests.cluster import ML, WORKSPACE, object_of, review_of, workspace_object

RESPONSE = TypeAdapter(AdmissionReviewAnswer).json_schema()
AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
ACCESS = 'object.get(input.resource, ["properties", "publicNetworkAccess"], "Enabled")'
OPEN = (
    'deny contains {"msg": "open to the public", "path": "/properties/publicNetworkAccess", "actual": access,'
    f' "expected": "Disabled"}} if access != "Disabled"\n\naccess := {ACCESS}'
)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """One policy that refuses public workspaces."""
    return load_bundle(write(tmp_path_factory.mktemp("bundle"), {"area/open.rego": rego("open", OPEN)}))


def response_to(bundle: Bundle, document: object, *resources: JsonObject, **options: Any) -> JsonObject:
    """The response to a review, which is valid and has its uid."""
    snapshot = Snapshot.model_validate({"resources": resources})

    def admit(prior: Sequence[Change], changes: Sequence[Change]) -> Decision:
        before = apply_changes(snapshot, prior).snapshot
        return policyeng.admit(bundle, before, changes, as_of=AS_OF, blame=Blame.INTRODUCED, **options)

    answer, refusal = review(document, BesideSnapshot(snapshot), admit, decision_id="d-1")
    assert refusal is None or not answer["response"]["allowed"]
    jsonschema.validate(answer, RESPONSE)
    assert isinstance(document, dict)
    assert answer["response"]["uid"] == document["request"]["uid"]
    assert json.loads(json.dumps(answer)) == answer
    return {**answer["response"]}


def workspace(access: str) -> JsonObject:
    """The workspace of the snapshot."""
    kind = "Microsoft.MachineLearningServices/workspaces"
    return {"id": WORKSPACE, "type": kind, "properties": {"publicNetworkAccess": access}}


def test_a_violating_object_is_denied_with_the_field_as_the_object_has_it(bundle: Bundle) -> None:
    """The response has what an audit needs to find the decision."""
    response = response_to(bundle, review_of("CREATE", workspace_object(publicNetworkAccess="Enabled")))

    assert response["allowed"] is False
    assert (response["status"]["code"], response["status"]["reason"]) == (403, "Forbidden")
    assert response["status"]["message"] == (
        "1 policy of policyeng:\n"
        "T-A-1 (high): open to the public: /spec/publicNetworkAccess is Enabled, expected Disabled"
    )
    annotations = response["auditAnnotations"]
    assert (annotations["decision-id"], annotations["denied-policies"], annotations["exit-code"]) == (
        "d-1",
        "T-A-1",
        "1",
    )
    assert len(annotations["snapshot-digest"]) == 64


def test_a_compliant_object_is_allowed(bundle: Bundle) -> None:
    """Without a warning where its id is known."""
    response = response_to(
        bundle, review_of("CREATE", workspace_object(publicNetworkAccess="Disabled")), workspace("Enabled")
    )

    assert response["allowed"] is True
    assert "warnings" not in response
    assert response["auditAnnotations"]["exit-code"] == "0"


def test_an_update_is_blamed_for_what_it_makes_worse_alone(bundle: Bundle) -> None:
    """The old failure is a warning, also where the snapshot does not contain it."""
    bad, good = (workspace_object(publicNetworkAccess=access) for access in ("Enabled", "Disabled"))
    touched = {**bad, "metadata": {**bad["metadata"], "finalizers": ["f"]}, "status": {"conditions": []}}
    for resources in ([workspace("Enabled")], [workspace("Disabled")], []):
        worse = response_to(bundle, review_of("UPDATE", bad, good), *resources)
        left = response_to(bundle, review_of("UPDATE", touched, bad), *resources)
        repaired = response_to(bundle, review_of("UPDATE", good, bad), *resources)

        assert (worse["allowed"], left["allowed"], repaired["allowed"]) == (False, True, True)
        assert left["warnings"][0] == (
            "T-A-1 still fails, as before the change: open to the public: /spec/publicNetworkAccess"
        )
        assert not any("T-A-1" in warning for warning in repaired.get("warnings", ()))


def test_a_deletion_is_evaluated_by_the_old_object(bundle: Bundle) -> None:
    """The response for an object that is kept in Azure has no message."""
    old = workspace_object(publicNetworkAccess="Enabled")
    gone = response_to(bundle, review_of("DELETE", None, old), workspace("Enabled"))
    kept = response_to(bundle, review_of("DELETE", None, workspace_object(policy="detach-on-delete")))

    assert gone["allowed"] is True
    assert gone["auditAnnotations"]["exit-code"] == "0"
    assert set(kept) == {"uid", "allowed"}
    assert (
        response_to(
            bundle,
            review_of("DELETE", None, None, kind={"group": ML.partition("/")[0], "version": "v1", "kind": "Workspace"}),
        )["status"]["code"]
        == 422
    )


def test_a_dry_run_gets_the_same_response(bundle: Bundle) -> None:
    """A dry run gets the same response as the request itself."""
    for access in ("Enabled", "Disabled"):
        shown = workspace_object(publicNetworkAccess=access)
        assert response_to(bundle, review_of("CREATE", shown, dryRun=True)) == response_to(
            bundle, review_of("CREATE", shown)
        )


@pytest.mark.parametrize(
    "document",
    [
        review_of("CREATE", object_of("ConfigMap", {}, api_version="v1")),
        review_of("DELETE", None, object_of("Server", {}, api_version="sql.azure.com/v1api20211101")),
        review_of("CONNECT", object_of("PodExecOptions", {}, api_version="v1"), subResource="exec"),
        review_of("UPDATE", workspace_object(publicNetworkAccess="Enabled"), workspace_object(), subResource="status"),
        review_of("CONNECT", workspace_object(publicNetworkAccess="Enabled")),
    ],
)
def test_a_review_outside_the_scope_is_allowed_without_a_message(document: JsonObject) -> None:
    """The policies are not evaluated."""

    def admit(prior: Sequence[Change], changes: Sequence[Change]) -> Decision:
        raise AssertionError((prior, changes))

    response = review(document, BesideSnapshot(Snapshot()), admit, decision_id="d").answer["response"]
    assert response == {"uid": document["request"]["uid"], "allowed": True}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (review_of("CREATE", object_of("Unheard", {})), "of `machinelearningservices.azure.com` is not supported"),
        (review_of("CREATE", object_of("Workspace", None)), "an object without a `spec`"),
        (review_of("CREATE", workspace_object(), object=None), "the request has no `object`"),
        (review_of("CREATE", workspace_object(), object=[1]), "not an object: a list"),
        (review_of("REPLACE", workspace_object()), "unknown operation: `REPLACE`"),
        (
            review_of("CREATE", workspace_object(), object=object_of("ConfigMap", {}, api_version="v1")),
            "the object is not a `",
        ),
        (review_of("CREATE", workspace_object(), kind={"version": "v1", "kind": "ConfigMap"}), "the object is not a `"),
        (review_of("CREATE", workspace_object(), kind=None), "the request has no kind"),
        (
            review_of(
                "CREATE",
                object_of(
                    "RoleAssignment",
                    {"owner": {"name": "n", "group": "x.azure.com", "kind": "X"}},
                    api_version="authorization.azure.com/v1api20220401",
                ),
            ),
            "the owner of the object is unknown; set `spec.owner.armId`",
        ),
    ],
)
def test_what_cannot_be_evaluated_is_denied(bundle: Bundle, document: JsonObject, message: str) -> None:
    """With the place and the remedy."""
    response = response_to(bundle, document)

    assert (response["allowed"], response["status"]["code"]) == (False, 422)
    assert message in response["status"]["message"]
    assert response["auditAnnotations"]["exit-code"] == "2"


def test_what_cannot_be_decided_is_denied() -> None:
    """Every error of ours denies."""

    def admit(prior: Sequence[Change], changes: Sequence[Change]) -> Decision:
        raise EngineError("the state is too old", remedy=str((prior, changes)))

    answer = review(review_of("CREATE", workspace_object()), BesideSnapshot(Snapshot()), admit).answer
    jsonschema.validate(answer, RESPONSE)
    assert (answer["response"]["allowed"], answer["response"]["status"]["code"]) == (False, 500)
    assert "the state is too old" in answer["response"]["status"]["message"]


def test_a_policy_error_is_one(tmp_path: Path) -> None:
    """It is no mere failure."""
    broken = load_bundle(write(tmp_path, {"area/p.rego": rego("p", 'deny contains {"msg": "m"} if 1 / 0 > 0')}))
    response = response_to(broken, review_of("CREATE", workspace_object()))

    assert (response["allowed"], response["status"]["code"]) == (False, 500)
    assert "T-A-1 (high): could not be evaluated" in response["status"]["message"]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "not an admission review: a list"),
        ({}, "not an admission review"),
        ({**review_of("CREATE"), "kind": "Review"}, "not an admission review"),
        ({**review_of("CREATE"), "apiVersion": "admission.k8s.io/v1beta1"}, "admissionReviewVersions"),
        ({**review_of("CREATE"), "request": None}, "without a request uid"),
        (review_of("CREATE", uid=""), "without a request uid"),
        (review_of("CREATE", uid=7), "without a request uid"),
    ],
)
def test_other_documents_than_reviews_are_refused(bundle: Bundle, document: object, message: str) -> None:
    """A document without a request uid has no response."""
    with pytest.raises(InputError, match=message):
        response_to(bundle, document)


def test_words_are_bounded(tmp_path: Path) -> None:
    """A message and warnings of many policies with long texts."""
    long = 'deny contains {{"msg": "{0}", "path": "/x", "actual": "{1}"}}'
    files = {
        f"area/p{number}.rego": rego(f"p{number}", long.format("m" * 300, "v" * 300), identity=f"T-A-{number}")
        for number in range(1, 31)
    }
    many = load_bundle(write(tmp_path, files))
    denied = response_to(many, review_of("CREATE", workspace_object()))
    left = response_to(many, review_of("UPDATE", workspace_object(), workspace_object()))

    assert denied["status"]["message"].endswith("and 21 more")
    assert denied["status"]["message"].startswith("30 policies")
    assert left["warnings"][-1] == "and 17 more warnings"
    assert sum(map(len, left["warnings"])) <= 4096


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
OWNERS = st.fixed_dictionaries(
    {}, optional={key: JSON | st.sampled_from(["ws", "Workspace"]) for key in ("name", "armId", "group", "kind")}
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "owner": OWNERS | JSON,
        "azureName": JSON,
        "publicNetworkAccess": JSON,
        "properties": JSON | st.fixed_dictionaries({"amlCompute": JSON}),
    },
)
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "apiVersion": st.sampled_from([ML, "v1", "amlarc.azureml.com/v1alpha1", *(f"{group}/v1" for group, _ in KINDS)])
        | JSON,
        "kind": st.sampled_from(["Workspace", "InstanceType", "InstanceTypeList", *(kind for _, kind in KINDS)]) | JSON,
        "metadata": st.fixed_dictionaries({"name": JSON | st.text()}, optional={"annotations": JSON}) | JSON,
        "spec": SPECS | JSON,
        "status": st.fixed_dictionaries({"id": JSON | st.just(WORKSPACE)}) | JSON,
        "items": JSON,
    },
)


@pytest.mark.slow
@settings(max_examples=100)
@given(
    st.sampled_from(["CREATE", "UPDATE", "DELETE", "CONNECT"]) | st.text(max_size=3),
    OBJECTS | JSON,
    OBJECTS | JSON,
    st.fixed_dictionaries({}, optional=dict.fromkeys(("kind", "subResource", "dryRun", "options"), JSON)),
    st.booleans(),
)
def test_any_review_gets_a_response(
    bundle: Bundle, operation: str, new: object, old: object, more: JsonObject, same: bool
) -> None:
    """The response is valid and has the uid; a missing object of an evaluated kind is never allowed."""
    shown = new if isinstance(new, dict) else None
    document = review_of(operation, shown, **more)
    document["request"] |= {"object": new, "oldObject": new if same else old}
    response_to(bundle, document, workspace("Enabled"))


@settings(max_examples=100)
@given(st.sampled_from(["CREATE", "UPDATE", "DELETE"]), OBJECTS, OBJECTS)
def test_no_object_of_an_evaluated_kind_is_allowed_without_a_decision(
    operation: str, new: JsonObject, old: JsonObject
) -> None:
    """Where the decision fails, no object of an evaluated kind is allowed, whatever its content."""
    ours = {"apiVersion": ML, "kind": "Workspace"}
    shown = None if operation == "DELETE" else {**new, **ours}

    def admit(prior: Sequence[Change], changes: Sequence[Change]) -> Decision:
        raise EngineError("no decision", remedy=str((prior, changes)))

    answer = review(
        review_of(operation, shown, {**old, **ours, "spec": {"x": 1}}), BesideSnapshot(Snapshot()), admit
    ).answer
    assert answer["response"]["allowed"] is False
