"""Profiles: named sets of parameters of a bundle."""

from __future__ import annotations

import json
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import policyeng
from policyeng.bundle import Bundle, load_bundle
from policyeng.bundle.parameters import spread_parameters
from policyeng.bundle.policy_selection import profile_of, profiles_of, with_profile
from policyeng.errors import BundleError, UsageError
from policyeng.models import JsonObject, Snapshot
from tests.bundles import deny_when, rego, workspace, write
from tests.command import policyeng as run
from tests.test_cli import AT, file

LIMITS = "parameters:\n  most: {type: integer, default: 1}\n  least: {type: integer, default: 0}"
POLICY = rego("a", deny_when("input.resource.properties.n > input.parameters.most"), more=LIMITS)
LOOSE: JsonObject = {"title": "Loose", "parameters": {"T-A-1": {"most": 3}}}
SERIES = ("AML-SKU-101", "AML-SKU-102", "AML-SKU-106", "AML-SKU-107")


def folder(tmp_path: Path, **profiles: object) -> Path:
    """A bundle with one policy and profiles."""
    files = {f"profiles/{name}/data.json": json.dumps(content) for name, content in profiles.items()}
    return write(tmp_path / "policies", {"area/a/a.rego": POLICY, **files})


def test_every_profile_that_we_ship_is_well_formed(bundle: Bundle) -> None:
    """Policies and parameters exist, values fit, and each names its purpose and its source."""
    profiles = profiles_of(bundle)

    assert [profile.name for profile in profiles] == ["azureml-v2", "documents"]
    for profile in profiles:
        assert profile.title
        assert profile.description
        assert profile.source


def test_the_policies_that_require_series_take_the_same_tables(bundle: Bundle) -> None:
    """One table serves all four: they demand the same of its rows."""
    headers = [policy.header for policy in bundle.policies if policy.id in SERIES]
    schemas = [{**header.parameters["extra_series"], "description": ""} for header in headers]

    assert len(schemas) == len(SERIES)
    assert all(schema == schemas[0] for schema in schemas)
    assert schemas[0]["additionalProperties"]["required"] == ["category", "restricted", "source"]
    assert all(header.defaults["vendor_series"] is True for header in headers)


def test_the_documents_leave_out_every_list_of_today(bundle: Bundle) -> None:
    """Each parameter that adds to the documents is off, or as the documents have it."""
    chosen = profile_of(bundle, "documents").parameters

    for policy in bundle.policies:
        for name in ("vendor_series", "vendor_targets"):
            if name in policy.header.parameters:
                assert chosen[policy.id][name] is False
        for name in ("extra_series", "extra_targets"):
            if name in policy.header.parameters:
                assert chosen[policy.id][name] == {}
    assert chosen["AML-INF-101"] == {"gpu_realtime_targets": ["aks"]}
    assert profile_of(bundle, "azureml-v2").parameters == {}


def outcome(bundle: Bundle, policy: str, size: str, kind: str = "AmlCompute", **more: Any) -> str:
    """Return the outcome of a policy for a compute of a size."""
    cluster = {
        "id": f"{workspace()['id']}/computes/c",
        "type": "Microsoft.MachineLearningServices/workspaces/computes",
        "properties": {"computeType": kind, "properties": {"vmSize": size}},
    }
    snapshot = Snapshot.model_validate({"resources": [workspace(), cluster]})
    alone = bundle.only(entry for entry in bundle.policies if entry.id == policy)
    (finding,) = policyeng.evaluate(alone, snapshot, as_of=datetime(2026, 11, 22, tzinfo=UTC), **more).findings
    return finding.outcome.value


@pytest.mark.parametrize(
    ("size", "policy", "documents", "today"),
    [
        ("Standard_E4s_v3", "AML-SKU-102", "fail", "pass"),
        ("standard_e4S_v3", "AML-SKU-101", "pass", "pass"),
        ("Standard_NC4as_T4_v3", "AML-SKU-102", "fail", "pass"),
        ("Standard_NC4as_T4_v3", "AML-SKU-101", "pass", "fail"),
        ("Standard_FX12mds", "AML-SKU-107", "unknown", "pass"),
        ("Standard_D4s_v5", "AML-SKU-102", "fail", "pass"),
        ("Standard_DC4as_v5", "AML-SKU-102", "fail", "fail"),
        ("Standard_NG32adms_V620_v1", "AML-SKU-102", "fail", "fail"),
        ("Standard_B2s", "AML-SKU-102", "fail", "fail"),
        ("Standard_X1", "AML-SKU-102", "unknown", "unknown"),
        ("Standard_X1", "AML-SKU-103", "fail", "fail"),
        ("Standard_NC6s_v3", "AML-SKU-102", "pass", "pass"),
    ],
)
def test_newer_series_are_supported_by_default(
    bundle: Bundle, size: str, policy: str, documents: str, today: str
) -> None:
    """And those that need a quota request are restricted; `azureml-v2` is another name of the default."""
    profiles = ("documents", None, "azureml-v2")
    outcomes = [outcome(bundle, policy, size, profile=profile) for profile in profiles]

    assert outcomes == [documents, today, today]


@pytest.mark.parametrize("policy", ["AML-SKU-102", "AML-SKU-103", "AML-SKU-107"])
@pytest.mark.parametrize(
    "size",
    [
        "Standard_NC24ads_A100_v4",
        "Standard_NC40ads_H100_v5",
        "Standard_ND96asr_v4",
        "Standard_ND96amsr_A100_v4",
        "Standard_ND96isr_H100_v5",
        "Standard_ND96isr_H200_v5",
        "Standard_ND96isr_MI300X_v5",
        "Standard_NC4as_T4_v3",
        "Standard_E4ds_v4",
        "Standard_E4as_v5",
        "Standard_D4as_v4",
        "Standard_D4as_v5",
        "Standard_D4ds_v5",
        "Standard_D4s_v5",
        "Standard_HB120rs_v3",
        "Standard_HX176rs",
        "Standard_L8s_v3",
    ],
)
def test_the_sizes_of_today_pass(bundle: Bundle, size: str, policy: str) -> None:
    """On clusters and on instances."""
    assert outcome(bundle, policy, size) == "pass"
    assert outcome(bundle, policy, size, kind="ComputeInstance") == "pass"


def test_a_further_series_adds_to_the_lists(bundle: Bundle) -> None:
    """A team that adds one series keeps those of today."""
    row = {"category": "general purpose", "restricted": False, "source": "the team"}
    added = {"*": {"extra_series": {"DSv6": row}}}

    assert outcome(bundle, "AML-SKU-102", "Standard_D4s_v6") == "fail"
    assert outcome(bundle, "AML-SKU-102", "Standard_D4s_v6", parameters=added) == "pass"
    assert outcome(bundle, "AML-SKU-102", "Standard_D4as_v5", parameters=added) == "pass"
    assert outcome(bundle, "AML-SKU-102", "Standard_D4s_v6", parameters=added, profile="documents") == "pass"


def test_a_managed_endpoint_serves_with_a_gpu_by_default(bundle: Bundle) -> None:
    """Where 001 and 000 disagree, the default follows 000."""
    declared = {"id": "scoring", "purpose": "realtime-inference", "target": "managed-online", "accelerator": "gpu"}
    snapshot = Snapshot.model_validate({"resources": [], "workloads": [declared]})
    outcomes = [
        finding.outcome
        for profile in ("documents", None, "azureml-v2")
        for finding in policyeng.evaluate(bundle, snapshot, profile=profile).findings
        if finding.policy == "AML-INF-101"
    ]
    assert outcomes == ["fail", "pass", "pass"]


def test_what_is_given_goes_before_the_profile_and_that_before_the_default(tmp_path: Path) -> None:
    """Parameter by parameter."""
    loose = {"parameters": {"T-A-1": {"most": 3, "least": 2}}}
    bundle = load_bundle(folder(tmp_path, loose=loose))

    assert with_profile(bundle, None, {"T-A-1": {"most": 5}}) == {"T-A-1": {"most": 5}}
    assert with_profile(bundle, "loose", {}) == loose["parameters"]
    assert with_profile(bundle, "loose", {"T-A-1": {"most": 5}}) == {"T-A-1": {"most": 5, "least": 2}}


def test_a_profile_of_policies_that_are_not_in_force_is_taken(tmp_path: Path) -> None:
    """Selecting a few policies does not make a profile wrong."""
    bundle = load_bundle(folder(tmp_path, loose=LOOSE))

    assert profile_of(bundle.only([]), "loose") == profile_of(bundle, "loose")


def test_an_unknown_profile_is_a_wrong_use(tmp_path: Path) -> None:
    """With the nearest name, and all of them."""
    bundle = load_bundle(folder(tmp_path, loose=LOOSE, tight={}))

    with pytest.raises(
        UsageError, match="no profile is called `lose`; did you mean `loose`; the profiles are loose, t"
    ):
        profile_of(bundle, "lose")
    with pytest.raises(UsageError, match="the policies bring no profile"):
        profile_of(load_bundle(folder(tmp_path / "other")), "loose")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "profile `x`: the profile is no object"),
        (None, "profile `x`: the profile is no object"),
        ({"parameter": {}}, "profile `x`: the profile has an unknown key `parameter`; did you mean `parameters`"),
        ({"title": 7}, "profile `x`: title: the title of the profile is no text"),
        ({"parameters": []}, "profile `x`: parameters: the parameters of the profile are no objects"),
        ({"parameters": {"T-A-1": 1}}, "profile `x`: parameters: the parameters of the profile are no objects"),
        (
            {"parameters": {"T-A-2": {}}},
            "profile `x`: parameters are given for `T-A-2`, which is no policy; did you mean `T-A-1`",
        ),
        (
            {"parameters": {"T-A-1": {"mots": 1}}},
            "profile `x`: `T-A-1` has no parameter `mots`; did you mean `most`",
        ),
        (
            {"parameters": {"T-A-1": {"most": "1"}}},
            "profile `x`: parameter `most` of `T-A-1`: '1' is not of type 'integer'",
        ),
    ],
)
def test_a_profile_that_is_not_well_formed_is_refused_when_it_is_used(
    tmp_path: Path, content: object, message: str
) -> None:
    """It names the place; a run without it does not read it."""
    bundle = load_bundle(folder(tmp_path, x={}))
    bundle.data["profiles"]["x"] = content

    with pytest.raises(BundleError) as refusal:
        profile_of(bundle, "x")
    with pytest.raises(BundleError):
        profiles_of(bundle)

    assert str(refusal.value).startswith(message)
    assert with_profile(bundle, None, {}) == {}


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ('only = ["azk"]', "parameter `only` of `T-A-1`: at /0, `azk` is not one of `aks`, `aci`; did you mean `aks`"),
        ("only = [7]", "parameter `only` of `T-A-1`: at /0, `7` is not one of `aks`, `aci`"),
        ('most = {"a/b" = {c = "x"}}', "parameter `most` of `T-A-1`: at /a~1b/c, 'x' is not of type 'integer'"),
        (f'most = "{"x" * 999}"', f"parameter `most` of `T-A-1`: '{'x' * 199}…"),
        ("mots = 1", "`T-A-1` has no parameter `mots`; did you mean `most`"),
    ],
)
def test_a_value_that_does_not_fit_is_found_again(tmp_path: Path, written: str, message: str) -> None:
    """The file and its line, where inside the value, and what was meant; the same in a profile and from a program."""
    numbers = "{type: object, additionalProperties: {type: object, additionalProperties: {type: integer}}, default: {}}"
    names = "{type: array, items: {enum: [aks, aci]}, default: []}"
    policy = rego("a", deny_when("true"), more=f"parameters:\n  most: {numbers}\n  only: {names}")
    policies = write(tmp_path / "policies", {"area/a/a.rego": policy})
    (tmp_path / "policyeng.toml").write_text(f"[parameters.T-A-1]\n{written}\n", encoding="utf-8")
    bundle = load_bundle(policies)
    bundle.data["profiles"] = {"x": {"parameters": {"T-A-1": tomllib.loads(written)}}}

    for command in (("check", file(tmp_path, workspace())), ("policies", "show", "T-A-1")):
        ran = run(*command, "--policy", str(policies), folder=tmp_path)
        assert (ran.returncode, ran.stderr) == (3, f"policyeng: {tmp_path / 'policyeng.toml'}:1: {message}\n")
    with pytest.raises(BundleError) as refusal:
        profile_of(bundle, "x")
    assert str(refusal.value) == f"profile `x`: {message}"
    with pytest.raises(UsageError) as refused:
        policyeng.evaluate(bundle, Snapshot(), parameters={"T-A-1": tomllib.loads(written)})
    assert str(refused.value) == message


def test_parameters_for_no_policy_name_their_file(tmp_path: Path) -> None:
    """As values that do not fit do."""
    (tmp_path / "policyeng.toml").write_text("[parameters.T-A-2]\nmost = 1\n", encoding="utf-8")
    ran = run("check", file(tmp_path, workspace()), "--policy", str(folder(tmp_path)), folder=tmp_path)

    assert ran.stderr.startswith(f"policyeng: {tmp_path / 'policyeng.toml'}:1: parameters are given for `T-A-2`")


@pytest.mark.parametrize("profile", [3, ["loose"], True])
def test_a_profile_that_is_no_text_is_a_wrong_use(tmp_path: Path, profile: object) -> None:
    """A program may hand over anything."""
    with pytest.raises(UsageError, match="a profile is chosen by its name"):
        policyeng.evaluate(load_bundle(folder(tmp_path, loose=LOOSE)), Snapshot(), profile=profile)  # type: ignore[arg-type]  # what is tested


def test_profiles_of_another_shape_are_refused(tmp_path: Path) -> None:
    """Such as data of others that only has the name."""
    bundle = load_bundle(folder(tmp_path))
    bundle.data["profiles"] = ["x"]

    with pytest.raises(BundleError, match=r"data.profiles: the profiles are no object"):
        profiles_of(bundle)


def test_flag_environment_and_file_choose_a_profile(tmp_path: Path) -> None:
    """And parameters of the file go before it; the text report names the profile."""
    policies, snapshot = str(folder(tmp_path, loose=LOOSE, tight={})), file(tmp_path, workspace("w", n=2))
    line = ("check", snapshot, "--policy", policies, *AT)
    config = tmp_path / "policyeng.toml"

    assert run(*line, folder=tmp_path).returncode == 1
    chosen = run(*line, "--profile", "loose", folder=tmp_path)
    assert chosen.returncode == 0
    assert " (profile loose), as of" in " ".join(chosen.stdout.split())
    assert run(*line, folder=tmp_path, POLICYENG_PROFILE="loose").returncode == 0
    config.write_text('profile = "loose"\n', encoding="utf-8")
    assert run(*line, folder=tmp_path).returncode == 0
    assert run(*line, "--profile", "tight", folder=tmp_path).returncode == 1
    config.write_text('profile = "loose"\n[parameters.T-A-1]\nmost = 1\n', encoding="utf-8")
    assert run(*line, folder=tmp_path).returncode == 1


@pytest.mark.parametrize("name", ["", "nobody"])
def test_a_profile_that_is_not_there_exits_3(tmp_path: Path, name: str) -> None:
    """An empty one is what an empty shell variable leaves behind."""
    ran = run("check", file(tmp_path, workspace()), "--profile", name, folder=tmp_path)

    assert (ran.returncode, ran.stdout) == (3, "")


def test_what_a_profile_sets_is_wrapped(tmp_path: Path) -> None:
    """A line for each policy in the order of the ids, names below each other, and nothing that a terminal obeys."""
    names = [f"a_rather_long_name_{number}" for number in range(6)]
    parameters = "parameters:\n" + "".join(f"  {name}: {{type: integer, default: 0}}\n" for name in names)
    files = {
        "area/a/a.rego": rego("a", deny_when("true"), more=parameters.rstrip()),
        "area/b/b.rego": rego("b", deny_when("true"), more=LIMITS, identity="LONGER-B-1"),
        "profiles/x/data.json": json.dumps(
            {"title": "X\x1b[31m", "parameters": {"T-A-1": dict.fromkeys(names, 1), "LONGER-B-1": {"most": 2}}}
        ),
    }
    listed = run("policies", "list", "--profiles", "--policy", str(write(tmp_path / "p", files)), folder=tmp_path)

    assert listed.stdout.splitlines() == [
        "x            X\\u001b[31m",
        "  LONGER-B-1  most",
        f"  T-A-1       {', '.join(names[:3])},",
        f"              {', '.join(names[3:])}",
        "1 profile",
    ]


def test_a_star_is_every_policy_that_has_the_parameter(bundle: Bundle) -> None:
    """Once for all of them, behind what is given for one; a name that none has is refused."""
    words = {"*": {"regulated_classifications": ["secret"]}, "AML-ISO-101": {"regulated_classifications": ["x"]}}
    given = spread_parameters(bundle, words)
    having = {policy.id for policy in bundle.policies if "regulated_classifications" in policy.header.parameters}

    assert given.keys() == having
    assert len(having) == 7
    assert given["AML-ISO-101"] == {"regulated_classifications": ["x"]}
    assert given["AML-NET-105"] == {"regulated_classifications": ["secret"]}
    assert spread_parameters(bundle.only([]), words).keys() == having
    with pytest.raises(UsageError, match="no policy has a parameter `regulated_classification`; did you mean"):
        spread_parameters(bundle, {"*": {"regulated_classification": []}})


def test_all_policies_with_one_parameter_of_the_organisation_have_one_default(bundle: Bundle) -> None:
    """Parameters of one name are one question, but for those whose defaults the rules of peers give each by itself."""
    apart = {"accepted_modes", "categories", "idle_days", "longest_days", "required", "required_tags"}
    by_word: dict[str, list[object]] = {}
    for policy in bundle.policies:
        for name, schema in policy.header.parameters.items():
            if name not in apart:
                by_word.setdefault(name, []).append(schema["default"])

    assert all(default == defaults[0] for defaults in by_word.values() for default in defaults)


def test_a_star_of_the_configuration_reaches_a_run(tmp_path: Path) -> None:
    """From the file and in the program alike, and a misspelt one names the file."""
    policies = folder(tmp_path)
    snapshot = file(tmp_path, workspace("a", n=2))
    config = tmp_path / "policyeng.toml"
    config.write_text('[parameters."*"]\nmost = 2\n', encoding="utf-8")

    assert run("check", snapshot, "--policy", str(policies), *AT, folder=tmp_path).returncode == 0
    loaded = policyeng.load_bundle(policies)
    evaluation = policyeng.evaluate(loaded, policyeng.load_snapshot(snapshot), parameters={"*": {"most": 2}})
    assert evaluation.exit_code == 0
    config.write_text('[parameters."*"]\nmots = 2\n', encoding="utf-8")
    refused = run("check", snapshot, "--policy", str(policies), *AT, folder=tmp_path)
    assert refused.returncode == 3
    assert "policyeng.toml:1: no policy has a parameter `mots`; did you mean `most`" in refused.stderr


def test_profiles_are_listed_and_shown(tmp_path: Path) -> None:
    """`policies list --profiles`, and the parameters of a policy under one."""
    policies = str(folder(tmp_path, loose=LOOSE))

    listed = run("policies", "list", "--profiles", "--policy", policies, folder=tmp_path)
    assert listed.stdout == "loose        Loose\n  T-A-1  most\n1 profile\n"
    for more in (["--select", "T-A-1"], ["--format", "markdown"]):
        refused = run("policies", "list", "--profiles", "--policy", policies, *more, folder=tmp_path)
        assert (refused.returncode, refused.stdout) == (3, "")
    as_json = run("policies", "list", "--profiles", "--policy", policies, "--format", "json", folder=tmp_path)
    assert json.loads(as_json.stdout)[0]["parameters"] == LOOSE["parameters"]
    shown = run("policies", "show", "T-A-1", "--policy", policies, "--profile", "loose", folder=tmp_path)
    assert "  most\n    type      integer\n    default   1\n    here      3\n  least\n" in shown.stdout
    assert shown.stdout.count("    here ") == 1
