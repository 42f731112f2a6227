"""Exemption files: every entry names an owner, an approver and an end, or is refused with file, line and remedy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from policyeng.errors import InputError
from policyeng.sources import exemptions_of, load_exemptions, read_exemptions

SCOPE = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-ml"
ENTRY = {
    "id": "EX-1",
    "policy": "AML-NET-001",
    "scope": SCOPE,
    "category": "waiver",
    "reason": "migration",
    "owner": "a@example.com",
    "approvedBy": "b@example.com",
    "createdAt": "2026-01-01T00:00:00Z",
    "expiresAt": "2027-01-01T00:00:00Z",
}


def yaml_of(*entries: Mapping[str, object]) -> str:
    """A file in which the first entry begins in line 2, one key in each line."""
    lines = ["exemptions:"]
    for entry in entries:
        keys = [f"{key}: {json.dumps(value)}" for key, value in entry.items()]
        lines += [f"{'  - ' if index == 0 else '    '}{text}" for index, text in enumerate(keys)]
    return "\n".join(lines) + "\n"


def test_yaml_and_json_give_the_same(here: Path) -> None:
    """The name of the file decides; times need no quotes in YAML."""
    (here / "e.yaml").write_text(yaml_of(ENTRY).replace('"2026-01-01T00:00:00Z"', "2026-01-01T00:00:00Z"))
    (here / "e.json").write_text(json.dumps({"exemptions": [ENTRY]}, indent="\t"))
    [exemption] = load_exemptions("e.yaml")

    assert load_exemptions(here / "e.json") == (exemption,)
    assert exemption.created_at == datetime(2026, 1, 1, tzinfo=UTC)
    assert exemption.approved_by == "b@example.com"


def test_no_exemptions_is_a_list_without_entries(here: Path) -> None:
    """An empty list is fine; a file without the list is not."""
    (here / "e.yaml").write_text("exemptions: []\n")

    assert load_exemptions("e.yaml") == ()


def without(key: str) -> dict[str, object]:
    """The entry without one key."""
    return {name: value for name, value in ENTRY.items() if name != key}


REFUSED: dict[str, tuple[dict[str, object], int, str, str]] = {
    "no end": (without("expiresAt"), 2, "`expiresAt` is missing", "add `expiresAt`"),
    "no owner": (without("owner"), 2, "`owner` is missing", "add `owner`"),
    "a time without zone": (
        {**ENTRY, "createdAt": "2026-01-01T00:00:00"},
        9,
        "`createdAt` has no time zone",
        "with a time zone",
    ),
    "a day that does not exist": (
        {**ENTRY, "expiresAt": "2026-02-30"},
        10,
        "`expiresAt` is not a time",
        "with a time zone",
    ),
    "a time of digits": ({**ENTRY, "expiresAt": "1800000000"}, 10, "`expiresAt` is not a time", "with a time zone"),
    "a time that is a number": (
        {**ENTRY, "expiresAt": 1800000000},
        10,
        "`expiresAt` is not a time",
        "with a time zone",
    ),
    "an end before the beginning": (
        {**ENTRY, "expiresAt": "2025-12-31T00:00:00Z"},
        10,
        "`expiresAt` is not after `createdAt`",
        "give a later `expiresAt`",
    ),
    "an end at the beginning": (
        {**ENTRY, "expiresAt": "2026-01-01T01:00:00+01:00"},
        10,
        "`expiresAt` is not after `createdAt`",
        "give a later `expiresAt`",
    ),
    "an end a second too late": (
        {**ENTRY, "expiresAt": "2027-01-01T00:00:01Z"},
        10,
        "`expiresAt` is more than 365 days after `createdAt`",
        "within 365 days and renew it, or raise `max_exemption_days`",
    ),
    "approved by its owner": (
        {**ENTRY, "approvedBy": " A@Example.com "},
        8,
        "`owner` and `approvedBy` are both `a@example.com`",
        "let someone other than the owner approve it",
    ),
    "its own approver but for an invisible character": (
        {**ENTRY, "approvedBy": "a@example.com\u200b"},
        8,
        "`owner` and `approvedBy` are both `a@example.com`",
        "someone other than the owner",
    ),
    "its own approver in wide letters": (
        {**ENTRY, "approvedBy": "\uff41@example.com"},
        8,
        "`owner` and `approvedBy` are both `a@example.com`",
        "someone other than the owner",
    ),
    "an approver in letters of two scripts": (
        {**ENTRY, "approvedBy": "\u0430@example.com"},
        8,
        "`approvedBy` has letters of another script that look like ASCII: `\\u0430@example.com`",
        "write it in one script",
    ),
    "an owner in letters of two scripts": (
        {**ENTRY, "owner": "Carl <c\u0430rl@example.com>"},
        7,
        "`owner` has letters of another script that look like ASCII: `c\\u0430rl@example.com`",
        "write it in one script",
    ),
    "an invisible owner": ({**ENTRY, "owner": "\u200b"}, 7, "`owner` is blank", "give the owner"),
    "a blank reason": ({**ENTRY, "reason": "  "}, 6, "`reason` is blank", "give the reason"),
    "a blank approver": ({**ENTRY, "approvedBy": "\t"}, 8, "`approvedBy` is blank", "give the approvedBy"),
    "an empty owner": ({**ENTRY, "owner": ""}, 7, "`owner` does not fit", "at least 1 character"),
    "a pattern of policies": (
        {**ENTRY, "policy": "AML-NET-*"},
        3,
        "not the exact id of one policy: `AML-NET-*`",
        "one exemption for",
    ),
    "two policies": (
        {**ENTRY, "policy": "AML-NET-001, AML-NET-002"},
        3,
        "not the exact id of one policy",
        "one exemption for each",
    ),
    "a list of policies": ({**ENTRY, "policy": ["AML-NET-001"]}, 3, "`policy` does not fit", "a valid string"),
    "a scope that is a name": ({**ENTRY, "scope": "ws"}, 4, "`scope` is not an ARM id: `ws`", "give the ARM id of"),
    "a scope that is everything": ({**ENTRY, "scope": "/"}, 4, "`scope` is not an ARM id: `/`", "give the ARM id of"),
    "a scope with a wildcard": ({**ENTRY, "scope": f"{SCOPE}*"}, 4, "`scope` is not an ARM id", "give the ARM id of"),
    "a scope with a placeholder": ({**ENTRY, "scope": "/subscriptions/<id>"}, 4, "is not an ARM id", "give the ARM id"),
    "a scope cut short": ({**ENTRY, "scope": f"{SCOPE}/providers/A"}, 4, "is not an ARM id", "give the ARM id of"),
    "another category": ({**ENTRY, "category": "accepted"}, 5, "`category` does not fit", "`waiver` or `mitigated`"),
    "an unknown key": (
        {**ENTRY, "expires": ""},
        11,
        "unknown key `expires`; did you mean `expiresAt`",
        "the known keys are `id`",
    ),
    "a snake_case key": (
        {**without("approvedBy"), "approved_by": "b"},
        2,
        "`approvedBy` is missing",
        "add `approvedBy`",
    ),
}


@pytest.mark.parametrize(("entry", "line", "message", "remedy"), REFUSED.values(), ids=REFUSED)
def test_an_entry_that_does_not_fit_is_refused(
    here: Path, entry: dict[str, object], line: int, message: str, remedy: str
) -> None:
    """The message names file, line, entry and remedy, and the entry exempts nothing."""
    (here / "e.yaml").write_text(yaml_of(entry))
    exemptions, problems = read_exemptions("e.yaml")

    assert exemptions == ()
    assert [problem.level for problem in problems] == ["error"] * (2 if "approved_by" in entry else 1)
    assert problems[0].place == f"e.yaml:{line}"
    assert problems[0].message.startswith("exemption `EX-1`: ")
    assert message in problems[0].message
    assert remedy in problems[0].message


SAME = "; let someone other than the owner approve it"
FAULTS: list[tuple[dict[str, object], str]] = [
    ({"reason": " "}, "`reason` is blank; give the reason"),
    (
        {"owner": "\u0430@example.com", "approvedBy": "a@example.com"},
        "`owner` has letters of another script that look like ASCII: `\\u0430@example.com`; write it in one script",
    ),
    (
        {"owner": "\uff41@b.example", "approvedBy": "a@b.example"},
        f"`owner` and `approvedBy` are both `a@b.example`{SAME}",
    ),
    ({"policy": "*"}, "`policy` is not the exact id of one policy: `*`; write one exemption for each policy id"),
    (
        {"scope": "ws"},
        "`scope` is not an ARM id: `ws`; give the ARM id of a resource, resource group, subscription or management "
        "group",
    ),
    ({"expiresAt": "2025-01-01T00:00:00Z"}, "`expiresAt` is not after `createdAt`; give a later `expiresAt`"),
    (
        {"expiresAt": "2028-01-01T00:00:00Z"},
        "`expiresAt` is more than 365 days after `createdAt`; let it expire within 365 days and renew it, or raise "
        "`max_exemption_days`",
    ),
]


@pytest.mark.parametrize(("changes", "message"), FAULTS)
def test_each_fault_is_one_message_with_its_remedy(here: Path, changes: dict[str, object], message: str) -> None:
    """The whole message, and no second one for the same fault."""
    (here / "e.yaml").write_text(yaml_of({**ENTRY, **changes}))

    assert [problem.message for problem in read_exemptions("e.yaml").problems] == [f"exemption `EX-1`: {message}"]


@pytest.mark.parametrize("sign", "*?[]{}()|,^$\\ \t\n")
def test_no_sign_of_a_pattern_is_part_of_a_policy(here: Path, sign: str) -> None:
    """An exemption names one policy, whatever the language of the pattern."""
    (here / "e.yaml").write_text(yaml_of({**ENTRY, "policy": f"AML{sign}NET"}))
    exemptions, [problem] = read_exemptions("e.yaml")

    assert exemptions == ()
    assert "`policy` is not the exact id of one policy" in problem.message


def test_letters_are_no_signs_of_a_pattern(here: Path) -> None:
    """Ids of policies of others may have letters and digits of every kind, and dots, dashes, slashes and colons."""
    policy = "data.Xx_9-é/deny:XX"
    (here / "e.yaml").write_text(yaml_of({**ENTRY, "policy": policy}))

    assert [exemption.policy for exemption in read_exemptions("e.yaml").exemptions] == [policy]


def test_the_shortest_life_is_any_time_at_all(here: Path) -> None:
    """An exemption may end a second after it begins."""
    (here / "e.yaml").write_text(yaml_of({**ENTRY, "expiresAt": "2026-01-01T00:00:01Z"}))

    assert len(load_exemptions("e.yaml")) == 1


@pytest.mark.parametrize("name", ["e.json", "e.JSON"])
def test_a_file_named_json_is_read_as_json_only(here: Path, name: str) -> None:
    """YAML under such a name is refused."""
    (here / name).write_text(yaml_of(ENTRY))
    exemptions, [problem] = read_exemptions(name)

    assert exemptions == ()
    assert "not valid JSON" in problem.message


@pytest.mark.parametrize("name", ["e.json", "e.yaml"])
def test_a_file_that_is_too_large_is_refused(here: Path, name: str) -> None:
    """The limit is an argument; exactly the limit is read."""
    text = json.dumps({"exemptions": [ENTRY]})
    (here / name).write_text(text)

    assert len(read_exemptions(name, max_bytes=len(text)).exemptions) == 1
    exemptions, [problem] = read_exemptions(name, max_bytes=len(text) - 1)
    assert exemptions == ()
    assert problem.level == "error"


def test_exemptions_of_a_program_follow_the_same_rules() -> None:
    """Faults are named by their JSON Pointers, and the longest life is an argument there, too."""
    document = {"exemptions": [ENTRY, {**ENTRY, "id": "EX-2", "scope": "ws"}]}
    exemptions, [problem] = exemptions_of(document, "body")

    assert [exemption.id for exemption in exemptions] == ["EX-1"]
    assert problem.place == "body:/exemptions/1/scope"
    assert problem.message.startswith("exemption `EX-2`: `scope` is not an ARM id")
    assert [fault.place for fault in exemptions_of({"exemptions": [ENTRY]}, "body", max_days=364).problems] == [
        "body:/exemptions/0/expiresAt"
    ]


def test_every_fault_of_a_file_without_a_list_is_named(here: Path) -> None:
    """An unknown key does not hide that the list is none."""
    (here / "e.yaml").write_text("exemption: []\nexemptions: {}\n")

    assert [(problem.place, problem.message) for problem in read_exemptions("e.yaml").problems] == [
        ("e.yaml:1", "unknown key `exemption`; did you mean `exemptions`; remove it"),
        ("e.yaml:2", "`exemptions` is an object, not a list; list the exemptions, each with a dash"),
    ]


def test_json_files_are_refused_with_their_lines_too(here: Path) -> None:
    """The line is that of the value."""
    (here / "e.json").write_text(json.dumps({"exemptions": [{**ENTRY, "policy": "*"}]}, indent=1))

    assert read_exemptions("e.json").problems[0].place == "e.json:5"


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", "e.yaml", "the file is empty; give a YAML document"),
        ("exemptions: [", "e.yaml:2:1", "not valid YAML (did not find expected node content); correct it there"),
        (
            "exemptions:\nexemptions:\n",
            "e.yaml:2:1",
            "/exemptions: duplicate key `exemptions`, first in line 1; ",
        ),
        (
            "- id: EX-1",
            "e.yaml:1",
            "no `exemptions` in the file: a list that begins with an object with the keys `id`; ",
        ),
        ("- exemptions", "e.yaml:1", "no `exemptions` in the file: "),
        ("exemptions", "e.yaml:1", "no `exemptions` in the file: "),
        ("exemption: []", "e.yaml:1", "no `exemptions` in the file: an object with the keys `exemption`; start with"),
        ("exemptions: {}", "e.yaml:1", "`exemptions` is an object, not a list; list the exemptions, each with a dash"),
        ("exemptions:\n", "e.yaml:1", "`exemptions` is null, not a list; list the exemptions, each with a dash"),
        ("exemptions: []\nexemption: []", "e.yaml:2", "unknown key `exemption`; did you mean `exemptions`; remove it"),
        ("exemptions:\n- text", "e.yaml:2", 'exemption 1: the document does not fit: `"text"`; it should be an object'),
    ],
)
def test_a_file_that_does_not_fit_is_refused(here: Path, text: str, place: str, message: str) -> None:
    """A fault of the file as a whole is reported with its line."""
    (here / "e.yaml").write_text(text)
    [problem] = read_exemptions("e.yaml").problems

    assert problem.place == place
    assert problem.message.startswith(message)
    if message.startswith("no `exemptions`"):
        assert problem.message.endswith("; start with `exemptions:` and list them below it")


def test_a_missing_file_is_refused() -> None:
    """The message names it."""
    with pytest.raises(InputError, match=r"^none\.yaml: cannot be read \(no such file or directory\); give a file"):
        load_exemptions("none.yaml")


def test_one_id_twice_is_refused(here: Path) -> None:
    """The first stays; the second is refused at its id."""
    (here / "e.yaml").write_text(yaml_of(ENTRY, {**ENTRY, "policy": "AML-NET-002"}))
    exemptions, [problem] = read_exemptions("e.yaml")

    assert [exemption.policy for exemption in exemptions] == ["AML-NET-001"]
    assert problem.place == "e.yaml:11"
    assert (
        problem.message == "exemption `EX-1`: an earlier exemption has the same `id`; give each exemption its own `id`"
    )


def test_a_faulty_entry_hides_no_other(here: Path) -> None:
    """The good ones are read; for programs, one fault refuses the file and the others are counted."""
    (here / "e.yaml").write_text(yaml_of({**ENTRY, "scope": "x", "policy": "*"}, {**ENTRY, "id": "EX-2"}))

    assert [exemption.id for exemption in read_exemptions("e.yaml").exemptions] == ["EX-2"]
    with pytest.raises(
        InputError, match=r"^e\.yaml:3: exemption `EX-1`: `policy` is not the exact id of one policy.*\(and 1 more\)$"
    ):
        load_exemptions("e.yaml")


def test_the_longest_life_is_an_argument(here: Path) -> None:
    """Exactly the longest is allowed."""
    (here / "e.yaml").write_text(yaml_of({**ENTRY, "expiresAt": "2026-01-31T00:00:00Z"}))

    assert len(load_exemptions("e.yaml", max_days=30)) == 1
    with pytest.raises(InputError, match="more than 29 days after"):
        load_exemptions("e.yaml", max_days=29)


@pytest.mark.parametrize(
    "scope",
    [
        "/subscriptions/11111111-1111-1111-1111-111111111111",
        SCOPE,
        f"{SCOPE}/providers/Microsoft.MachineLearningServices/workspaces/ws/computes/c",
        "/providers/Microsoft.Management/managementGroups/mg",
    ],
)
def test_scopes_are_resources_and_their_parents(here: Path, scope: str) -> None:
    """Management groups, subscriptions, resource groups and resources."""
    (here / "e.yaml").write_text(yaml_of({**ENTRY, "scope": scope}))

    assert load_exemptions("e.yaml")[0].scope == scope
