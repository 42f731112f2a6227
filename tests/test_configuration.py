"""Settings: flag over environment over file over default, and every wrong key refused with the nearest right one."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyeng.configuration import Settings, describe_unknown_variables, resolve
from policyeng.errors import UsageError
from policyeng.models import Blame, Enforcement, Mode, Severity

EVERYTHING = """\
profile = "strict"
fail_on = "high"
select = ["network", "AML-RBAC-101"]
ignore = "cost"
exemptions = ["exemptions.yaml", "/etc/more.yaml"]
max_exemption_days = 90
verification_key = "public.pem"
verification_algorithm = "ES256"
verification_key_id = "k1"
verification_scope = "write"
require_signature = true
allow_unsigned_directory = true
strict_unknown = true
blame = "Introduced"
exclude = ["build/", "/tests/x.json"]
azure_policy = ["policies"]
aliases = "aliases.json"

[parameters."AML-INF-101"]
limit = 3
regions = ["eastus"]

[[modes]]
mode = "Warn"

[[modes]]
policy = "network"
scope = "/subscriptions/s"
mode = "deny"
"""


def configured(directory: Path, text: str, name: str = "policyeng.toml") -> Path:
    """A configuration file with some text."""
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return path


def test_without_anything_the_defaults_apply(tmp_path: Path) -> None:
    """Every setting has a default, and shows it as that."""
    settings = resolve({}, {}, tmp_path)

    assert settings == Settings(origins=settings.origins)
    assert settings.fail_on is Severity.LOW
    assert settings.max_exemption_days == 365
    assert set(settings.origins.values()) == {"default"}


def test_everything_can_be_in_the_file(tmp_path: Path) -> None:
    """Origins name file and line; exemption files are relative to the file."""
    path = configured(tmp_path, EVERYTHING)
    settings = resolve({}, {}, tmp_path)

    assert settings == Settings(
        profile="strict",
        fail_on=Severity.HIGH,
        select=("network", "AML-RBAC-101"),
        ignore=("cost",),
        exemptions=(tmp_path / "exemptions.yaml", Path("/etc/more.yaml")),
        exclude=(f"{tmp_path}/**/build/", f"{tmp_path}/tests/x.json"),
        azure_policy=(tmp_path / "policies",),
        aliases=tmp_path / "aliases.json",
        max_exemption_days=90,
        verification_key=tmp_path / "public.pem",
        verification_algorithm="ES256",
        verification_key_id="k1",
        verification_scope="write",
        require_signature=True,
        allow_unsigned_directory=True,
        strict_unknown=True,
        parameters={"AML-INF-101": {"limit": 3, "regions": ["eastus"]}},
        modes=(
            Enforcement(mode=Mode.WARN),
            Enforcement(policy="network", scope="/subscriptions/s", mode=Mode.DENY),
        ),
        blame=Blame.INTRODUCED,
        file=path,
        is_found=True,
        origins={
            "profile": f"{path}:1",
            "fail_on": f"{path}:2",
            "select": f"{path}:3",
            "ignore": f"{path}:4",
            "exemptions": f"{path}:5",
            "max_exemption_days": f"{path}:6",
            "verification_key": f"{path}:7",
            "verification_algorithm": f"{path}:8",
            "verification_key_id": f"{path}:9",
            "verification_scope": f"{path}:10",
            "require_signature": f"{path}:11",
            "allow_unsigned_directory": f"{path}:12",
            "strict_unknown": f"{path}:13",
            "blame": f"{path}:14",
            "exclude": f"{path}:15",
            "azure_policy": f"{path}:16",
            "aliases": f"{path}:17",
            "parameters": f"{path}:19",
            "modes": f"{path}:23",
            **dict.fromkeys(("frameworks", "store", "expect", "estates", "notify"), "default"),
        },
    )


def test_a_flag_that_was_not_given_takes_no_requirement_back(tmp_path: Path) -> None:
    """What the file requires, a command line without the flag requires too; the environment may override it."""
    configured(tmp_path, EVERYTHING)

    assert resolve({"require_signature": False}, {}, tmp_path).require_signature
    assert resolve({"strict_unknown": False}, {}, tmp_path).strict_unknown
    assert not resolve({}, {"POLICYENG_STRICT_UNKNOWN": "false"}, tmp_path).strict_unknown
    assert not resolve({}, {"POLICYENG_REQUIRE_SIGNATURE": "false"}, tmp_path).require_signature
    assert resolve({}, {"POLICYENG_VERIFICATION_KEY": "k.pem"}, tmp_path).verification_key == Path("k.pem")


@pytest.mark.parametrize(
    "text",
    [
        *('require_signature = "yes"', "require_signature = 1", "verification_key = 7"),
        *('allow_unsigned_directory = "no"', "allow_unsigned_directory = 1"),
        *('strict_unknown = "true"', "strict_unknown = 1"),
    ],
)
def test_a_requirement_that_does_not_fit_is_refused(tmp_path: Path, text: str) -> None:
    """A word that is nearly true is neither true nor false."""
    configured(tmp_path, text)

    with pytest.raises(UsageError, match=r"invalid value `.+` for `\w+`; (it must be a path|use true or false)$"):
        resolve({}, {}, tmp_path)


def test_a_flag_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    """Each setting alone: what a stronger place does not state is taken from the next."""
    configured(tmp_path, EVERYTHING)
    environ = {
        "POLICYENG_FAIL_ON": "critical",
        "POLICYENG_SELECT": " sku , network ",
        "POLICYENG_IGNORE": "",
        "PATH": "x",
    }
    flags = {"fail_on": "info", "select": None, "ignore": (), "exemptions": [Path("mine.yaml")], "profile": None}
    settings = resolve(flags, environ, tmp_path)

    assert settings.fail_on is Severity.INFO
    assert settings.select == ("sku", "network")
    assert settings.ignore == ("cost",)
    assert settings.exemptions == (Path("mine.yaml"),)
    assert settings.profile == "strict"
    assert settings.origins["fail_on"] == "flag --fail-on"
    assert settings.origins["select"] == "environment POLICYENG_SELECT"
    assert settings.origins["ignore"].endswith("policyeng.toml:4")


def test_lists_take_commas_in_flags_and_in_the_environment(tmp_path: Path) -> None:
    """A repeated flag and one with commas mean the same."""
    environ = {"POLICYENG_IGNORE": "a,b", "POLICYENG_MAX_EXEMPTION_DAYS": "30", "POLICYENG_EXEMPTIONS": "x.yaml"}
    settings = resolve({"select": ["a,b", "c"]}, environ, tmp_path)

    assert settings.select == ("a", "b", "c")
    assert settings.ignore == ("a", "b")
    assert settings.max_exemption_days == 30
    assert settings.exemptions == (Path("x.yaml"),)


def test_the_file_is_searched_upward(tmp_path: Path) -> None:
    """The nearest one counts; a `pyproject.toml` without our table is passed over, `policyeng.toml` comes first."""
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    configured(tmp_path, 'profile = "outer"')
    configured(inner, "[tool.other]\nselect = 1", "pyproject.toml")
    assert resolve({}, {}, inner).profile == "outer"

    configured(tmp_path / "a", '[tool.policyeng]\nprofile = "middle"\n', "pyproject.toml")
    assert resolve({}, {}, inner).profile == "middle"

    configured(tmp_path / "a", 'profile = "first"')
    assert resolve({}, {}, inner).profile == "first"


def test_lines_in_pyproject_are_those_of_our_table(tmp_path: Path) -> None:
    """Another tool's key of the same name is not ours."""
    path = configured(
        tmp_path, '[tool.ruff]\nselect = ["E"]\n\n[tool.policyeng]\nselect = ["network"]\n', "pyproject.toml"
    )

    assert resolve({}, {}, tmp_path).origins["select"] == f"{path}:5"


def test_modes_in_pyproject_are_those_of_our_table(tmp_path: Path) -> None:
    """With the line of each; they are tables, so the environment cannot give them."""
    text = '[[tool.other.modes]]\n[tool.policyeng]\n[[tool.policyeng.modes]]\nmode = "warn"\n[[tool.policyeng.modes]]'
    path = configured(tmp_path, text, "pyproject.toml")

    with pytest.raises(UsageError, match="table without a `mode`") as refused:
        resolve({}, {}, tmp_path)
    assert refused.value.place == (f"{path}:5",)
    configured(tmp_path, "", "empty.toml")
    assert resolve({}, {"POLICYENG_MODES": "warn"}, tmp_path, Path("empty.toml")).modes == ()
    assert resolve({}, {"POLICYENG_BLAME": "TOUCHED"}, tmp_path, Path("empty.toml")).blame is Blame.TOUCHED


def test_a_file_that_is_named_replaces_the_search(tmp_path: Path) -> None:
    """By flag, else by the environment; relative to the directory."""
    configured(tmp_path, 'profile = "found"')
    configured(tmp_path, 'profile = "named"', "other.toml")
    configured(tmp_path, '[tool.policyeng]\nprofile = "table"\n', "pyproject.toml")

    assert resolve({}, {}, tmp_path, Path("other.toml")).profile == "named"
    assert resolve({}, {"POLICYENG_CONFIG": "other.toml"}, tmp_path).profile == "named"
    assert resolve({}, {"POLICYENG_CONFIG": "none.toml"}, tmp_path, tmp_path / "pyproject.toml").profile == "table"


REFUSED: dict[str, tuple[str, int, str, str]] = {
    "an unknown key": (
        '# x\nfailon = "high"',
        2,
        "unknown key `failon`; did you mean `fail_on`",
        "choose from `profile`",
    ),
    "an unknown table": ("[paramters.x]", 1, "unknown key `paramters`; did you mean `parameters`", "choose from"),
    "a camelCase key": ('failOn = "high"', 1, "unknown key `failOn`; did you mean `fail_on`", "choose from"),
    "origins": ("origins = {}", 1, "unknown key `origins`", "choose from"),
    "another severity": (
        '\nfail_on = "sever"',
        2,
        "invalid value `sever` for `fail_on`",
        "`info`, `low`, `medium`, `high`",
    ),
    "a profile that is a number": ("profile = 1", 1, "invalid value `1` for `profile`", "it must be a valid string"),
    "a list of numbers": ("select = [1]", 1, "`select` is not a list of strings", 'write `select = ["..."]`'),
    "an empty file name": (
        'exemptions = [""]',
        1,
        "`exemptions` is not a list of strings",
        'write `exemptions = ["..."]`',
    ),
    "days as text": ('max_exemption_days = "30"', 1, "invalid value `30` for `max_exemption_days`", "a number of days"),
    "days that are true": ("max_exemption_days = true", 1, "for `max_exemption_days`", "a number of days"),
    "no days": (
        "max_exemption_days = 0",
        1,
        "invalid value `0` for `max_exemption_days`",
        "greater than or equal to 1",
    ),
    "parameters that are text": ('parameters = "x"', 1, "`parameters` is not a table", '`[parameters."AML-..."]`'),
    "a policy without a table": (
        '[parameters]\n"AML-A-1" = 3',
        2,
        "the parameters of `AML-A-1` are not a table",
        '`[parameters."AML-..."]`',
    ),
    "modes that are text": ('modes = "warn"', 1, "`modes` is not a list of tables", "write `[[modes]]`"),
    "a mode that is text": ('modes = ["warn"]', 1, "`modes` is not a list of tables", "write `[[modes]]`"),
    "a table without a mode": (
        '[[modes]]\nmode = "warn"\n[[modes]]\npolicy = "network"',
        3,
        "table without a `mode`",
        "choose from `deny`, `warn`, `shadow`",
    ),
    "another mode": (
        '[[modes]]\nmode = "warm"',
        1,
        "unknown mode `warm`; did you mean `warn`",
        "choose from `deny`, `warn`, `shadow`",
    ),
    "an unknown key of a mode": (
        '[[ modes ]]\nmode = "warn"\npolcy = "network"',
        1,
        "unknown key `polcy`; did you mean `policy`",
        "choose from `policy`, `scope`, `mode`",
    ),
    "a mode that is a number": ("[[modes]]\nmode = 1", 1, "`mode` of a mode is not a string", "write `[[modes]]`"),
    "a mode of no policy": (
        '[[modes]]\npolicy = ""\nmode = "warn"',
        1,
        "`policy` of a mode is not a string",
        "write `[[modes]]`",
    ),
    "another blame": (
        'blame = "touch"',
        1,
        "invalid value `touch` for `blame`; did you mean `touched`",
        "`introduced`",
    ),
    "a parameter that is a time": (
        '[parameters."AML-A-1"]\nsince = 2026-01-01',
        2,
        "the parameter `since` of `AML-A-1` is not a JSON value",
        "put times in quotes",
    ),
    "a parameter beyond 64 bits": (f"[parameters.A]\nx = {2**64}", 2, "`x` of `A` is not a JSON value", "64 bits"),
    "a parameter that is NaN": (
        '[parameters."AML-A-1"]\nx = [{y = nan}]',
        2,
        "`x` of `AML-A-1` is not a JSON value",
        "put",
    ),
}


@pytest.mark.parametrize(("text", "line", "message", "remedy"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_file_is_a_usage_error(tmp_path: Path, text: str, line: int, message: str, remedy: str) -> None:
    """File and line, what is wrong with the nearest name, and the remedy."""
    path = configured(tmp_path, text)
    with pytest.raises(UsageError) as refused:
        resolve({}, {}, tmp_path)

    assert refused.value.place == (f"{path}:{line}",)
    assert message in refused.value.message
    assert remedy in refused.value.remedy
    assert refused.value.exit_code == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"profile = ", "not valid TOML (Invalid value (at end of document)); fix the syntax"),
        (
            b'profile = "a"\nprofile = "b"',
            "not valid TOML (Cannot overwrite a value (at end of document)); fix the syntax",
        ),
        (b"profile = '\xff'", "not valid TOML ("),
        (b"x = " + b"[" * 100_000, "not valid TOML ("),
    ],
)
def test_a_file_that_is_not_toml_is_a_usage_error(tmp_path: Path, content: bytes, message: str) -> None:
    """The parser's reason is in the message."""
    path = tmp_path / "policyeng.toml"
    path.write_bytes(content)
    with pytest.raises(UsageError) as refused:
        resolve({}, {}, tmp_path)

    assert str(refused.value).startswith(f"{path}: {message}")


def test_a_named_file_must_be_there_and_ours(tmp_path: Path) -> None:
    """A missing one and a `pyproject.toml` without our table are refused."""
    with pytest.raises(UsageError, match=r"none\.toml: no such configuration file; pass an existing file"):
        resolve({}, {}, tmp_path, Path("none.toml"))
    configured(tmp_path, "[tool.other]", "pyproject.toml")
    with pytest.raises(UsageError, match=r"pyproject\.toml: the file has no `\[tool\.policyeng\]`; add"):
        resolve({}, {}, tmp_path, Path("pyproject.toml"))


def test_a_file_that_cannot_be_read_is_a_usage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's reason is passed on."""
    configured(tmp_path, "")

    def refuse(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(
        UsageError, match=r"policyeng\.toml: cannot read the file \(permission denied\); make it readable$"
    ):
        resolve({}, {}, tmp_path)


@pytest.mark.parametrize(
    ("flags", "environ", "message"),
    [
        (
            {},
            {"POLICYENG_FAIL_ON": "HIGHEST"},
            "environment POLICYENG_FAIL_ON: invalid value `HIGHEST` for `fail_on`; did you mean `high`; it must be",
        ),
        (
            {},
            {"POLICYENG_MAX_EXEMPTION_DAYS": "many"},
            "environment POLICYENG_MAX_EXEMPTION_DAYS: invalid value `many` for `max_exemption_days`; it must be",
        ),
        (
            {},
            {"POLICYENG_STRICT_UNKNOWN": "perhaps"},
            "environment POLICYENG_STRICT_UNKNOWN: invalid value `perhaps` for `strict_unknown`; it must be a valid",
        ),
        ({"fail_on": "none"}, {}, "flag --fail-on: invalid value `none` for `fail_on`; it must be"),
        ({"selct": "x"}, {}, "flag --selct: unknown setting `selct`; did you mean `select`; choose from"),
    ],
)
def test_wrong_flags_and_variables_are_usage_errors(
    tmp_path: Path, flags: dict[str, object], environ: dict[str, str], message: str
) -> None:
    """The place is the flag or the variable."""
    with pytest.raises(UsageError) as refused:
        resolve(flags, environ, tmp_path)

    assert str(refused.value).startswith(message)


@pytest.mark.parametrize("written", ["high", "HIGH", "High"])
def test_a_severity_is_one_in_any_letters(tmp_path: Path, written: str) -> None:
    """From a flag, a variable or a file."""
    (tmp_path / "policyeng.toml").write_text(f'fail_on = "{written}"\n', encoding="utf-8")

    assert resolve({}, {}, tmp_path).fail_on == "high"
    assert resolve({"fail_on": written}, {"POLICYENG_FAIL_ON": "low"}, tmp_path).fail_on == "high"
    assert resolve({}, {"POLICYENG_FAIL_ON": written}, tmp_path).fail_on == "high"


def test_variables_that_set_nothing_are_warned_of() -> None:
    """Another program may use the prefix; a misspelt one has the nearest name."""
    environ = {"POLICYENG_OPA_URL": "x", "POLICYENG_FAILON": "high", "POLICYENG_MODES": "warn", "HOME": "/"}

    assert list(describe_unknown_variables(environ, ["opa-url"])) == [
        "environment POLICYENG_FAILON: unknown variable, ignored; did you mean `POLICYENG_FAIL_ON`",
        "environment POLICYENG_MODES: unknown variable, ignored; did you mean `POLICYENG_BLAME`",
    ]


@given(st.binary(max_size=200) | st.text(alphabet='[]{}=".,\n#abprofileselect-1', max_size=60).map(str.encode))
def test_any_file_gives_settings_or_a_usage_error(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    """Nothing else comes out, whatever the file contains."""
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_bytes(content)
    with suppress(UsageError):
        resolve({}, {}, path.parent, path)


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("sqlite:///a.db", "sqlite:///{folder}/a.db"),
        ("sqlite:///", "sqlite:///"),
        ("postgresql://u@h/d", "postgresql://u@h/d"),
    ],
)
def test_only_the_path_of_a_store_is_relative_to_the_file(tmp_path: Path, given: str, read: str) -> None:
    """Other URLs, and one without a path, stay as they are."""
    configured(tmp_path, f'store = "{given}"\n')
    assert resolve({}, {}, tmp_path).store == read.format(folder=tmp_path)


def test_only_selectors_of_a_flag_are_split_at_commas(tmp_path: Path) -> None:
    """The name of a file may have one."""
    flags = {"select": ["a,b"], "exemptions": [Path("a,b.yaml")]}
    settings = resolve(flags, {}, tmp_path)
    assert (settings.select, settings.exemptions) == (("a", "b"), (Path("a,b.yaml"),))


def test_a_parameter_can_be_an_object(tmp_path: Path) -> None:
    """What is in it has to be JSON as well."""
    path = configured(tmp_path, '[parameters."AML-INF-101"]\nlimits = {small = 1, large = {a = [2]}}\n')
    assert resolve({}, {}, tmp_path).parameters == {"AML-INF-101": {"limits": {"small": 1, "large": {"a": [2]}}}}
    path.write_text('[parameters."AML-INF-101"]\nlimits = {small = 1, large = {a = [inf]}}\n', encoding="utf-8")
    with pytest.raises(UsageError, match="the parameter `limits` of `AML-INF-101` is not a JSON value"):
        resolve({}, {}, tmp_path)
