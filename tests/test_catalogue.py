"""The policies as one set: none contradicts another, each can be met and be missed, and names are unique."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

import orjson
import pytest

from policyeng import evaluate
from policyeng.bundle import Bundle, Policy, load_bundle
from policyeng.bundle.cases import DEFAULT_AS_OF, Baselines, Case, baselines_of, estate, read_cases
from policyeng.bundle.policy_selection import selected
from policyeng.facts.ids import workspace_of
from policyeng.models import Evaluation, JsonObject, Outcome, Snapshot
from policyeng.parsing.json_pointer import merged

BUNDLE = load_bundle()
BASELINES = baselines_of(BUNDLE)
BROKEN = (Outcome.FAIL, Outcome.ERROR)


#: What cases of other policies need of the baselines: an assignment on the workspace, a custom role.
NEEDED = frozenset({"AML-GOV-009", "AML-GOV-011"})


def evaluated(resources: Iterable[JsonObject], **stated: object) -> Evaluation:
    """The evaluation of an estate by all policies."""
    return evaluate(BUNDLE, Snapshot.model_validate({"resources": tuple(resources), **stated}), as_of=DEFAULT_AS_OF)


def broken(evaluation: Evaluation) -> list[tuple[str, str]]:
    """Policy and resource of every failure and error."""
    return [
        (found.policy, found.resource)
        for found in evaluation.findings
        if found.outcome in BROKEN and found.policy not in NEEDED
    ]


def test_the_baselines_pass_everything_together() -> None:
    """No failure and nothing unknown: all policies can be met at once."""
    evaluation = evaluated(BASELINES.resources.values(), **BASELINES.stated)

    assert [
        (found.policy, found.resource, found.denials, found.unknowns)
        for found in evaluation.findings
        if found.outcome is not Outcome.PASS and found.policy not in NEEDED
    ] == []


@pytest.mark.parametrize("stem", BASELINES.resources)
def test_each_baseline_fails_nothing_with_what_it_names(stem: str) -> None:
    """Alone in its workspace but for what it refers to and monitors; what is outside of workspaces or stated stays."""
    assert broken(evaluated(_with_what_it_names(stem), **BASELINES.stated)) == []


def _with_what_it_names(stem: str) -> list[JsonObject]:
    watching = BASELINES.resources["schedule"]
    outside = [watching, *(one for one in BASELINES.resources.values() if workspace_of(str(one["id"])) is None)]
    wanted = [*outside, *(one for one in [BASELINES.resources[stem]] if one not in outside)]
    for resource in wanted:
        text, extensions = orjson.dumps(resource).decode().lower(), f"{resource['id']}/providers/"
        for candidate in BASELINES.resources.values():
            arm_id = str(candidate["id"])
            is_named = f'{arm_id.lower()}"' in text or arm_id.startswith(extensions)
            is_monitor = "/schedules/" in arm_id and f'"{resource["id"]}"' in orjson.dumps(candidate).decode()
            if candidate not in wanted and (is_named or is_monitor):
                wanted.append(candidate)
    return wanted


def _staged(stage: str) -> dict[str, JsonObject]:
    """Every baseline that carries tags in one stage; a job carries them in its properties."""
    tags = {"tags": {"environment": stage}}
    return {
        stem: {"properties": tags} if "tags" in resource["properties"] else tags
        for stem, resource in BASELINES.resources.items()
        if "tags" in {**resource, **resource["properties"]}
    }


#: By class of work: merge patches on the baselines by stem, the baselines that cannot be of that class, and a policy
#: that then evaluates what it did not evaluate before.
CLASSES: dict[str, tuple[dict[str, JsonObject], set[str], str]] = {
    "dev": (_staged("dev"), set(), ""),
    # 001 leaves Container Instances to development and test.
    "production": (_staged("production"), {"service_aci", "container_group"}, ""),
    # Container Instances share their hosts.
    "regulated": ({"workspace": {"properties": {"hbiWorkspace": True}}}, {"service_aci"}, "AML-ISO-101"),
    "regulated by a tag": (
        {"workspace": {"tags": {"Data-Classification": "Restricted"}, "properties": {"hbiWorkspace": True}}},
        {"service_aci"},
        "AML-NET-105",
    ),
    "GPU inference": (
        {
            "aks_compute": {"properties": {"properties": {"agentVmSize": "Standard_NC4as_T4_v3"}}},
            "service_aks": {"properties": {"containerResourceRequirements": {"gpu": 1}}},
        },
        {"reservation"},  # it is for other sizes
        "AML-INF-101",
    ),
}


@pytest.mark.parametrize("name", CLASSES)
def test_every_class_of_work_has_a_compliant_estate(name: str) -> None:
    """Regulated or not, in any stage, with GPUs: there is an estate of it in which nothing fails."""
    patches, missing, policies = CLASSES[name]
    resources = [
        merged(resource, patches.get(stem, {})) for stem, resource in BASELINES.resources.items() if stem not in missing
    ]
    gone = {str(resource["id"]) for stem, resource in BASELINES.resources.items() if stem in missing}
    stated = {
        kind: [entry for entry in entries if entry.get("sourceId") not in gone]
        for kind, entries in BASELINES.stated.items()
    }
    evaluation = evaluated(resources, **stated)

    assert [
        (found.policy, found.resource, found.denials)
        for found in evaluation.findings
        if found.denials and found.policy not in NEEDED
    ] == []
    assert policies in {"", *(found.policy for found in evaluation.findings)}


def cases_of(policy: Policy, *verdicts: str) -> Iterator[tuple[str, str, Case, Snapshot, str]]:
    """Cases with their verdicts, names, estates and the lower-case id of the subject of each."""
    file = read_cases(policy)
    for verdict, name, case in file.named() if file else ():
        if verdict in verdicts:
            baseline = BASELINES.resources.get(case.baseline or "", {})
            identity = case.judged or str(merged(baseline, case.patch).get("id", ""))
            yield verdict, name, case, estate(BASELINES, case, name), identity.lower()


def of_case(
    policy: Policy,
    case: Case,
    snapshot: Snapshot,
    agreed: Mapping[str, JsonObject] | None = None,
    bundle: Bundle = BUNDLE,
) -> Evaluation:
    """An evaluation of the estate of a case by all policies or another bundle; `agreed` are parameters of others."""
    parameters = {policy.id: case.parameters, **(agreed or {})}
    return evaluate(bundle, snapshot, as_of=case.as_of or DEFAULT_AS_OF, parameters=parameters)


#: Where two policies disagree, the parameters of the other with which a policy can be met: 002 runs inference on
#: Functions, while 000 wants what is always on; whoever uses Functions states it. AML-DAT-202 limits connections with a
#: key, which AML-DAT-201 refuses unless their kind of authentication is accepted. AML-GOV-010 limits how long people
#: are Owner, who can manage compute.
AGREED: dict[str, dict[str, JsonObject]] = {
    "AML-DAT-202": {"AML-DAT-201": {"accepted_auth_types": ["ApiKey"]}},
    "AML-GOV-010": {"AML-RBAC-101": {"compute_manager_roles": ["AzureML Compute Operator", "Owner"]}},
    "AML-INF-116": {"AML-INF-112": {"realtime_targets": ["aks", "functions"]}},
}
#: Policies that concern only what fails another, which has an exemption then: an allow list limits public access.
WITH_AN_EXEMPTION = {"AML-NET-204": {"AML-NET-001"}}


def own_outcomes(policy: Policy, verdict: str) -> Iterator[Outcome]:
    """What all policies together make of each case with a verdict: the outcome of the policy for the subject."""
    for _, _, case, snapshot, identity in cases_of(policy, verdict):
        for found in of_case(policy, case, snapshot).findings:
            if found.policy == policy.id and found.resource.lower() == identity:
                yield found.outcome


@pytest.mark.slow
def test_each_policy_fails_somewhere_and_passes_somewhere() -> None:
    """With all others active, too; the first cases that show it are enough."""
    for policy in BUNDLE.policies:
        passing = (outcome for outcome in own_outcomes(policy, "pass") if outcome is Outcome.PASS)
        failing = (outcome for outcome in own_outcomes(policy, "fail") if outcome is Outcome.FAIL)
        assert len(list(islice(passing, 1))) == 1, policy.id
        assert len(list(islice(failing, 2))) == 2, policy.id


@pytest.mark.slow
def test_each_policy_can_be_met_without_missing_another() -> None:
    """Some case that passes fails no other policy on the same subject: what it requires is forbidden by none."""
    for policy in BUNDLE.policies:
        missed: dict[str, list[str]] = {}
        for _, name, case, snapshot, identity in cases_of(policy, "pass"):
            failing = broken(of_case(policy, case, snapshot, AGREED.get(policy.id)))
            others = [one for one, resource in failing if resource.lower() == identity]
            missed[name] = [one for one in others if one not in WITH_AN_EXEMPTION.get(policy.id, ())]
            if not missed[name]:
                break
        assert [] in missed.values(), (policy.id, missed)


def test_names_are_unique_without_case(bundle: Bundle) -> None:
    """Ids, titles, files and packages."""
    for names in (
        [policy.id for policy in bundle.policies],
        [policy.header.title for policy in bundle.policies],
        [policy.file for policy in bundle.policies],
        [policy.name for policy in bundle.policies],
        [path for policy in bundle.policies for _, path in policy.rules],
    ):
        assert [name for name, count in Counter(map(str.lower, names)).items() if count > 1] == []


@pytest.mark.slow
def test_no_two_policies_deny_one_place_with_one_message() -> None:
    """A reader distinguishes two denials by their text; the failing cases of a policy reach each of its denials."""
    messages: dict[str, set[str]] = defaultdict(set)
    for policy in BUNDLE.policies:
        alone = selected(BUNDLE, [policy.id])
        for _, _, case, snapshot, _ in cases_of(policy, "fail"):
            for found in of_case(policy, case, snapshot, bundle=alone).findings:
                for denial in found.denials:
                    messages[denial.msg].add(policy.id)

    assert len(messages) > len(BUNDLE.policies)
    assert {text: ids for text, ids in messages.items() if len(ids) > 1} == {}


def test_the_homes_of_the_baselines_are_one_workspace(baselines: Baselines) -> None:
    """The estate is whole: what lies in a workspace lies in the one that is there."""
    homes = {workspace_of(str(resource["id"])) for resource in baselines.resources.values()} - {None}

    assert homes == {str(baselines.resources["workspace"]["id"]).lower()}
