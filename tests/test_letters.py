"""Letters that look like others make no other tag, no other word and no other person."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from policyeng import admit, evaluate
from policyeng.admission import AdmissionOptions, decided_wholly
from policyeng.admission.changes import changes_of
from policyeng.bundle import Bundle
from policyeng.evaluation.normalization import approval_read, resource_read, tags_read, unreadable_read
from policyeng.facts.letters import as_seen, find_disguised_word, plain, same_person
from policyeng.models import Approval, DeclaredWorkload, Evaluation, JsonObject, Snapshot

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
ID = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.MachineLearningServices/workspaces/ws"
TYPE = "Microsoft.MachineLearningServices/workspaces"


def workspace(tags: JsonObject | None = None, **properties: object) -> JsonObject:
    """A workspace that is open to the public network."""
    open_to_all = {"publicNetworkAccess": "Enabled", "hbiWorkspace": False}
    return {"id": ID, "type": TYPE, "location": "eastus", "tags": tags or {}, "properties": open_to_all | properties}


def checked(bundle: Bundle, *ids: str, **snapshot: Any) -> Evaluation:
    """What some policies find in a snapshot."""
    only = bundle.only(policy for policy in bundle.policies if policy.id in ids)
    return evaluate(only, Snapshot(**snapshot), as_of=AS_OF)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b", "a b"),
        ("\uff52estricted", "restricted"),
        ("re\u200bstr\u00adicted\ufeff", "restricted"),
        ("\u2060\u034f\u3164\ufe0f\U000e0020", ""),
        ("\u212aey", "Key"),
        ("D\u0130sabled", "D\u0130sabled"),
        ("r\u0435stricted", "r\u0435stricted"),
    ],
)
def test_plain_is_nfkc_without_invisible_characters(text: str, expected: str) -> None:
    """Letters of another script stay."""
    assert plain(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("r\u0435stri\u0441ted", "restricted"),
        ("D\u0130sabled", "DIsabled"),
        ("\u0441\u0435\u043a\u0440\u0435\u0442\u043d\u043e", "cekpetho"),
        ("\u0422\u0415\u0421\u0422", "TECT"),
        ("\u03bf\u03c1\u03c4", "opt"),
        ("\u0392\u0395\u03a4\u0391", "BETA"),
        ("\u0131\u0251\u0261", "iag"),
        ("\u0438\u0432\u0430\u043d", "\u0438\u0432\u0430\u043d"),
        ("M\u00fcnchen", "M\u00fcnchen"),
    ],
)
def test_a_text_is_seen_in_ascii_where_all_letters_look_so(text: str, expected: str) -> None:
    """One letter that looks like none of ASCII, and the text stays as it is."""
    assert as_seen(text) == expected


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a@x", " A@X ", True),
        ("a@x", "a@x\u200b", True),
        ("a@x", "\u0430@x", True),
        ("stra\u00dfe", "STRASSE", True),
        ("a@x", "b@x", False),
        ("\u0438\u0432\u0430\u043d@x", "ivan@x", False),
    ],
)
def test_people_are_the_same_where_a_reader_sees_the_same(one: str, other: str, same: bool) -> None:
    """Whichever comes first."""
    assert same_person(one, other) is same
    assert same_person(other, one) is same


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("anna@contoso.example", ""),
        ("b\u0435n@contoso.example", "b\u0435n@contoso.example"),
        ("Ben <b\u0435n@contoso.example>", "b\u0435n@contoso.example"),
        ("\u0430@x", "\u0430@x"),
        ("\u0410\u043d\u043d\u0430 <anna@contoso.example>", ""),
        ("\u0438\u0432\u0430\u043d@contoso.example", ""),
        ("b\u0435n\u200b@x", "b\u0435n@x"),
        ("\u0410\u041e-1", ""),
        ("\u0130smail Y\u0131lmaz", ""),
        ("Ren\u00e9e", ""),
    ],
)
def test_a_word_that_mixes_scripts_to_look_like_ascii_is_disguised(text: str, word: str) -> None:
    """Names in one script are not, nor are those with a letter that looks like none of ASCII."""
    assert find_disguised_word(text) == word


ODD_TAGS: list[JsonObject] = [
    {"Data-Classification": "internal", "data-classification": "restricted"},
    {"data_classification": "restricted"},
    {"data-classification": "restricted\u200b"},
    {"data-classification": "\uff52estricted"},
    {"data-classification": "r\u0435stricted"},
    {"d\u0430ta-classification": "restricted"},
    {"data\u200b-classification": "restricted"},
    {"data-classification": "internal", "data-classification\u200b": "restricted"},
    {"data-classification": "internal", "dat\u0430 classific\u0430tion": "r\u0435stricted"},
]


@pytest.mark.attack
@pytest.mark.parametrize("tags", ODD_TAGS)
def test_work_is_regulated_however_the_tag_is_spelled(tags: JsonObject, bundle: Bundle) -> None:
    """Any spelling of the word counts, and a warning names what is written in other letters."""
    evaluation = checked(bundle, "AML-NET-105", resources=(workspace(tags),))

    assert {finding.outcome.value for finding in evaluation.findings} == {"fail"}
    odd = not "".join([*tags, *tags.values()]).isascii()
    assert [problem.level for problem in evaluation.problems if "letters" in problem.message] == ["warning"] * odd


@pytest.mark.parametrize("tags", [ODD_TAGS[2], ODD_TAGS[7]])
def test_a_change_is_decided_on_the_same_letters(tags: JsonObject, bundle: Bundle) -> None:
    """From what it affects as from everything, with the same warnings."""
    before = Snapshot(resources=(workspace({"data-classification": "internal"}),))
    only = bundle.only(policy for policy in bundle.policies if policy.id == "AML-NET-105")
    change = {"operation": "replace", "id": ID, "resource": workspace(tags)}

    decision = admit(only, before, change, as_of=AS_OF)

    assert decision.exit_code == 1
    assert any("letters" in problem.message for problem in decision.problems)
    assert decision == decided_wholly(only, before, changes_of(change), AdmissionOptions(AS_OF))


def test_a_tag_in_other_letters_is_not_the_one_that_is_required(bundle: Bundle) -> None:
    """What looks like the tag makes work regulated and is no tag that cost is allocated by."""
    tags = {"d\u0430ta-classification": "internal", "environment": "dev", "cost-center": "1", "owner": "a"}
    required = {"AML-COST-101": {"required_tags": ["data-classification"]}}
    only = bundle.only(policy for policy in bundle.policies if policy.id == "AML-COST-101")

    evaluation = evaluate(only, Snapshot(resources=(workspace(tags),)), as_of=AS_OF, parameters=required)

    assert [finding.outcome.value for finding in evaluation.findings] == ["fail"]


def test_a_tag_of_invisible_characters_is_blank(bundle: Bundle) -> None:
    """So that it states no owner."""
    tags = {"owner": "\u200b", "environment": "dev", "cost-center": "1"}

    (finding,) = checked(bundle, "AML-COST-101", resources=(workspace(tags),)).findings

    assert [denial.path for denial in finding.denials] == ["/tags/owner"]


def test_tags_keep_their_number_and_other_letters() -> None:
    """No tag replaces another, and what is no classification stays as it is written."""
    tags = {"data_classification": "a", "d\u0430ta-classification": "b", "d\u0430ta_classification": "c"}
    tags |= {f"data-classification{mark}": "d" for mark in ("\u200b", "\u200c", "\u200d")}

    read = tags_read(tags)

    assert list(read.values()) == list(tags.values())
    assert all(name.isascii() for name in read)
    assert {name.lower().replace("_", "-") for name in read} == {"data-classification"}
    later = {"d\u0430ta-classification": "a", "data_classification": "b"}
    assert list(tags_read(later)) == ["Data_classification", "data_classification"]
    assert tags_read({"Data-Classification": "r\u0435stricted"}) == {"Data-Classification": "restricted"}
    assert tags_read({"owner": "\u200b "}) == {"owner": " "}
    assert tags_read({"owner": "Ren\u00e9e\u200b", "t\u0435am": 7}) == {"owner": "Ren\u00e9e\u200b", "t\u0435am": 7}


@pytest.mark.attack
@pytest.mark.parametrize("value", ["D\u0130sabled", "Disabled\u200b", "Dis\u0430bled", "\uff24isabled"])
def test_a_word_in_other_letters_is_an_error(value: str, bundle: Bundle) -> None:
    """The service refuses it, and no policy may take it for the word."""
    evaluation = checked(bundle, "AML-NET-001", resources=(workspace(publicNetworkAccess=value),))

    (problem,) = (one for one in evaluation.problems if one.level == "error")
    assert "/properties/publicNetworkAccess" in problem.message
    assert problem.message.isascii()
    assert evaluation.exit_code == 2


def test_a_change_to_a_word_in_other_letters_is_denied(bundle: Bundle) -> None:
    """With exit code 2, also where the state has such a word already."""
    only = bundle.only(policy for policy in bundle.policies if policy.id == "AML-NET-001")
    for existing in ("Disabled", "D\u0130sabled"):
        before = Snapshot(resources=(workspace(publicNetworkAccess=existing),))
        change = {"operation": "replace", "id": ID, "resource": workspace(publicNetworkAccess="D\u0130sabled")}
        assert admit(only, before, change, as_of=AS_OF).exit_code == 2


@pytest.mark.parametrize(
    "properties",
    [
        {"friendlyName": "\u0130stanbul"},
        {"description": "Disabled\u200b"},
        {"primaryUserAssignedIdentity": "/x" * 40 + "\u0130"},
        {"status": "\u0130s aller"},
        {"tags": {"provisioningState": "F\u0430iled"}},
    ],
)
def test_prose_may_have_any_letters(properties: JsonObject) -> None:
    """Names that users give, long texts, several words and tags are no words of ARM."""
    resource = workspace(**properties)

    assert resource_read(resource, b"\xc4\xb0").problems == ()


@pytest.mark.parametrize(
    "name",
    ["adminPublicKey", "adminUserName", "command", "experimentName", "filter", "id", "name", "shortDescription"],
)
def test_values_that_users_write_may_have_any_letters(name: str) -> None:
    """Also those that policies read."""
    assert resource_read(workspace(None, **{name: "D\u0130sabled"}), b"\xc4\xb0").problems == ()


@pytest.mark.parametrize(("length", "problems"), [(64, 1), (65, 0)])
def test_a_word_of_arm_is_not_long(length: int, problems: int) -> None:
    """Longer values are ids, commands and prose."""
    resource = workspace(publicNetworkAccess="\u0430" * length)

    assert len(resource_read(resource, b"\xc4\xb0").problems) == problems


def test_a_word_in_other_letters_is_found_at_any_depth() -> None:
    """In objects and lists; the place is the id, and the message names the pointer and both spellings."""
    rules = [{"provisioningState": "Failed"}, {"provisioningState": ["Succeeded", "F\u0430iled"]}]
    for resource, above in (
        (workspace(**{"managed/Network": {"rules": rules}}), "/properties/managed~1Network"),
        ({**workspace(), "managed/Network": {"rules": rules}}, "/managed~1Network"),
    ):
        (problem,) = resource_read(resource, b"\xc4\xb0").problems
        pointer = f"{above}/rules/1/provisioningState/1"
        message = rf"`F\u0430iled` at `{pointer}` looks like `Failed` but has letters that are not ASCII"
        assert (problem.level, problem.place, problem.message) == ("error", ID, f"{message}; write it in ASCII")


@pytest.mark.parametrize("path", [("tags",), ("properties", "tags"), ("properties", "kvTags")])
def test_tags_are_read_wherever_a_resource_has_them(path: tuple[str, ...]) -> None:
    """A warning names both spellings; nothing but the tags is changed."""

    def tagged(tags: object) -> Any:
        return {"id": ID, path[0]: tags if len(path) == 1 else {"a": 1, path[1]: tags}}

    read = resource_read(tagged({"owner": "a", "D\u0430ta-Classification": "r\u0435stricted"}), b"\xc4\xb0")

    assert read.document == tagged({"owner": "a", "data_classification": "restricted"})
    (problem,) = read.problems
    pointer = "/".join(("", *path))
    assert (problem.level, problem.place) == ("warning", ID)
    assert problem.message == (
        rf"the tag `D\u0430ta-Classification` in `{pointer}` has look-alike or invisible letters and "
        "is read as `data_classification` with the value `restricted`; write it in ASCII"
    )


def test_a_tag_that_reads_as_blank_is_a_warning() -> None:
    """Only the one that changes."""
    tags = {"owner": "\u200b ", "team": "\u0442eam"}

    (problem,) = resource_read(workspace(tags), b"\xc4\xb0").problems

    assert "`owner` in `/tags`" in problem.message
    assert "is read as a blank value" in problem.message


@pytest.mark.parametrize("tags", [{"\u0430" * 5000: "\u200b"}, {"data-classification": "\u0430" * 5000}])
def test_the_message_about_a_long_tag_is_short(tags: JsonObject) -> None:
    """Its name and its value are cut."""
    (problem,) = resource_read(workspace(tags), b"\xc4\xb0").problems

    assert len(problem.message) < 500


def test_a_type_and_tags_are_no_words() -> None:
    """Whatever letters they have."""
    tags = {"provisioningState": "F\u0430iled"}
    resource = {**workspace(tags), "type": "Microsoft.M\u0430chineLearningServices"}

    assert resource_read(resource, b"\xc4\xb0").problems == ()


@pytest.mark.parametrize("properties", [None, "text", [{"tags": {}}]])
def test_properties_of_any_shape_have_no_tags(properties: object) -> None:
    """They are read as they are."""
    resource = {"id": ID, "properties": properties}

    assert resource_read(resource, b"\xc4\xb0") == (resource, ())


def approval(**people: str) -> JsonObject:
    """A granted approval."""
    scope = {"id": "A-1", "kind": "vmSeries", "series": "NCsv3", "scope": "/subscriptions/s", "status": "granted"}
    return {**scope, **people}


@pytest.mark.attack
@pytest.mark.parametrize("approver", ["anna@x\u200b", "\uff41nna@x", "\u0430nna@x"])
def test_no_one_approves_their_own_request_in_other_letters(approver: str, bundle: Bundle) -> None:
    """The approver who looks like the requester is that person."""
    given = Approval.model_validate(approval(requestedBy="anna@x", approvedBy=approver))

    evaluation = checked(bundle, "AML-RBAC-104", approvals=(given,))

    assert [finding.outcome.value for finding in evaluation.findings] == ["fail"]


def test_a_disguised_approver_is_an_error(bundle: Bundle) -> None:
    """Whoever it is meant to look like."""
    given = Approval.model_validate(approval(requestedBy="anna@x", approvedBy="b\u0435n@x"))

    evaluation = checked(bundle, "AML-RBAC-104", approvals=(given,))

    (problem,) = (one for one in evaluation.problems if one.level == "error")
    message = r"`approvedBy` has letters of another script that look like ASCII: `b\u0435n@x`; write it in one script"
    assert (problem.place, problem.message) == ("approval A-1", message)
    assert evaluation.exit_code == 2


def test_approvals_in_ascii_or_of_one_person_stay() -> None:
    """Only names of people are read otherwise."""
    plain_one = approval(requestedBy="anna@x", approvedBy="ben@x")
    assert approval_read(plain_one).document is plain_one
    assert approval_read(approval(approvedBy="ben@x\u200b")).document["approvedBy"] == "ben@x"
    two = approval_read(approval(requestedBy="Ren\u00e9e", approvedBy="ben@x\u200b")).document
    assert (two["requestedBy"], two["approvedBy"]) == ("Ren\u00e9e", "ben@x")


def test_an_unread_tag_is_unread_in_every_spelling() -> None:
    """So that what could state that work is regulated leaves it undecided."""
    reasons = {"/tags/data_classification": "why", "/tags/owner": "x", "/properties/tags/DataClassification": "why"}

    read = unreadable_read(reasons)

    assert read == {**reasons, "/tags/data-classification": "why", "/properties/tags/data-classification": "why"}
    assert unreadable_read({"/tags/d\u0430ta-classification": "x"})["/tags/data-classification"] == "x"
    for other in ({"/tags/owner": "x"}, {"/properties/data_classification": "x"}):
        assert unreadable_read(other) == other


def test_tags_of_declared_work_are_read_too(bundle: Bundle) -> None:
    """As those of resources."""
    work = {"id": "w", "workspaceId": ID, "target": "local", "purpose": "training"}
    tags = {"environment": "dev", "data-classification": "restricted\u200b"}
    home = workspace({"environment": "dev"})

    evaluation = checked(
        bundle,
        "AML-TRN-108",
        resources=(home,),
        workloads=(DeclaredWorkload.model_validate({**work, "tags": tags}),),
    )

    assert [finding.outcome.value for finding in evaluation.findings] == ["fail"]


def test_a_classification_that_is_not_known_is_a_warning(bundle: Bundle) -> None:
    """One for each word, with the nearest that is known; harmless and regulated ones are known, also those given."""
    words = ["confidental", "Confidental", "internal", "Public", "restricted", "c3", "geheim"]
    resources = tuple(
        {**workspace({"Data-Classification": word}), "id": f"{ID}{number}"} for number, word in enumerate(words)
    )
    given = {"AML-NET-105": {"regulated_classifications": ["confidential", "Geheim", "restricted"]}}
    only = bundle.only(policy for policy in bundle.policies if policy.id in ("AML-NET-105", "AML-NET-001"))

    evaluation = evaluate(only, Snapshot(resources=resources), as_of=AS_OF, parameters=given)

    warnings = [problem for problem in evaluation.problems if problem.level == "warning"]
    assert [problem.message.split("`")[1] for problem in warnings] == ["c3", "confidental"]
    assert "did you mean `confidential`" in warnings[1].message


def test_classifications_are_not_remarked_on_where_no_policy_reads_them(bundle: Bundle) -> None:
    """Nor those of resources that are not of Machine Learning."""
    foreign = {"id": "/subscriptions/s/resourceGroups/r", "type": "Microsoft.Resources/resourceGroups"}
    tagged = workspace({"data-classification": "c3"})

    assert not checked(bundle, "AML-NET-001", resources=(tagged,)).problems
    resources = ({**foreign, "tags": tagged["tags"]}, workspace())
    assert not checked(bundle, "AML-NET-001", "AML-NET-105", resources=resources).problems


def test_a_change_remarks_on_the_words_that_it_brings(bundle: Bundle) -> None:
    """As a full evaluation does: not on those that are there, and again once they were gone."""
    first, second = ({**workspace({"data-classification": word}), "id": f"{ID}{word}"} for word in ("c3", "internal"))
    before = Snapshot(resources=(first, second))
    changes: list[list[JsonObject]] = [
        [{**second, "tags": {"data-classification": "c3"}}],
        [{**second, "tags": {"data-classification": "c4"}}],
        [{**first, "tags": {}}],
    ]
    for earlier in ([], [{**first, "tags": {}}]):
        for change in changes:
            quick = admit(bundle, before, change, as_of=AS_OF, before=earlier)
            whole = decided_wholly(
                bundle, before, changes_of(change), AdmissionOptions(AS_OF), before=changes_of(earlier)
            )
            assert quick.problems == whole.problems
