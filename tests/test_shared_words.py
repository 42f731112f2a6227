"""The words that policies share mean the same in Rego and in Python: the catalogue, moments, ids, counts, permissions.

`regulated` and `stage` are in `test_twins.py`, whole estates in `test_shared_estates.py`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from policyeng.bundle import load_bundle
from policyeng.facts import ids
from policyeng.facts.approvals import needs_approval
from policyeng.facts.numbers import parse_whole_number
from policyeng.facts.permissions import action_matches, granted
from policyeng.models import JsonObject
from policyeng.verify.generators.json_mutations import ODD_TEXTS
from tests.drawn import LAW
from tests.probes import Probe
from tests.test_compute_managers import BLOCKS, ODD, patterns

FACTS = load_bundle().facts
DOCUMENT = FACTS.document
BARE = {"id": "/x", "type": "t"}


def document_of(**members: object) -> JsonObject:
    """A document for a probe."""
    return {**BARE, **members}


def spelled(names: list[str]) -> st.SearchStrategy[str]:
    """Names of a table, in any letters, and near them."""
    return st.builds(
        lambda name, change: change(name),
        st.sampled_from(names),
        st.sampled_from([str, str.upper, str.lower, str.title, lambda name: f"{name} ", lambda name: name[:-1]]),
    )


ANYTHING: st.SearchStrategy[object] = st.sampled_from([None, 7, 1.5, True, [], {}, ["Standard_NC6"], *ODD_TEXTS])
SIZES = spelled([row["name"] for row in DOCUMENT["vm_sizes"].values()]) | ANYTHING
SERIES = spelled(sorted({row["series"] for row in DOCUMENT["vm_sizes"].values()} | set(DOCUMENT["vm_series"])))
CATALOGUE = Probe(
    "sizes",
    row="sizes.facts_of(input.resource.size)",
    series="sizes.series(input.resource.size)",
    isolated="sizes.is_isolated(input.resource.size)",
)


@LAW
@given(SIZES)
def test_a_size_is_the_same_in_both_languages(size: object) -> None:
    """Its row, its series and its isolation; other values and unknown names have none."""
    known = FACTS.size(size) if isinstance(size, str) else None
    isolated = isinstance(size, str) and FACTS.is_isolated(size)

    rego = CATALOGUE(document_of(size=size))

    assert [row["name"] for row in rego["row"]] == ([known.name] if known else [])
    assert rego["series"] == ([known.series] if known else [])
    assert rego["isolated"] == ([True] if isolated else [])


def test_every_size_of_the_catalogue_is_the_same_in_both_languages() -> None:
    """All rows at once: the series of each."""
    rows = "{name: sizes.series(name) | some name in input.resource.names}"
    names = list(DOCUMENT["vm_sizes"])

    (series,) = Probe("sizes", series=rows)(document_of(names=names))["series"]

    assert series == {name: size.series for name in names if (size := FACTS.size(name))}


SERIES_WORDS = Probe(
    "sizes",
    rows="sizes.series_rows(input.resource.series, input.resource.plain)",
    supported="sizes.is_supported(input.resource.series, input.resource.plain)",
    restricted="sizes.needs_approval(input.resource.series, input.resource.plain)",
    by="sizes.supported_by(input.resource.series, input.resource.plain)",
    extra="sizes.needs_approval(input.resource.series, input.resource.extra)",
    today="sizes.needs_approval(input.resource.series, input.resource.today)",
)


@LAW
@given(SERIES, st.dictionaries(SERIES, st.fixed_dictionaries({"restricted": st.booleans()}), max_size=2))
def test_a_series_is_the_same_in_both_languages(series: str, extra: dict[str, JsonObject]) -> None:
    """Its row of the documents' table, and what a parameter adds; names compare without case."""
    known = FACTS.series(series)
    restricted = known is not None and known.restriction == "approval"
    added = any(name.lower() == series.lower() and row["restricted"] for name, row in extra.items())

    plain = {"extra_series": {}, "vendor_series": False}
    today = {"extra_series": extra, "vendor_series": True}
    rego = SERIES_WORDS(document_of(series=series, plain=plain, extra={**plain, "extra_series": extra}, today=today))

    assert [row["category"] for row in rego["rows"][0]] == ([known.category] if known else [])
    assert rego["supported"] == ([True] if known else [])
    assert rego["restricted"] == ([True] if restricted else [])
    if known:
        assert tuple(rego["by"][0]) == known.supported_by
    assert rego["extra"] == ([True] if restricted or added else [])
    assert rego["today"] == ([True] if needs_approval(series, FACTS, today) else [])


#: Beyond 1678 to 2261 all moments of Rego are alike, so an offset at the very edge could change sides.
WITHIN = st.datetimes(
    datetime(1678, 1, 2),
    datetime(2261, 12, 30),
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=14)), timezone(timedelta(hours=-11, minutes=-30))]),
)
ANY_TIME = st.datetimes(timezones=st.just(UTC))
TIMES = Probe(
    "times",
    first="times.ordered(input.resource.first)",
    before="times.ordered(input.resource.first) < times.ordered(input.resource.second)",
    same="times.ordered(input.resource.first) == times.ordered(input.resource.second)",
)


@LAW
@given(WITHIN, WITHIN | st.just(None), st.sampled_from([0, 1, 999_999]))
def test_moments_sort_in_rego_as_in_python(first: datetime, second: datetime | None, microseconds: int) -> None:
    """To the microsecond and whatever their zones; a moment a microsecond later is later."""
    other = second or first + timedelta(microseconds=microseconds)

    rego = TIMES(document_of(first=first.isoformat(), second=other.isoformat()))

    assert rego["before"] == [first < other]
    assert rego["same"] == [first == other]


@LAW
@given(ANY_TIME, ANY_TIME)
def test_moments_of_any_year_never_sort_the_other_way(first: datetime, second: datetime) -> None:
    """Beyond the reach of nanoseconds they are alike, never reversed."""
    texts = [moment.isoformat().replace("+00:00", "Z") for moment in sorted((first, second))]

    assert TIMES(document_of(first=texts[1], second=texts[0]))["before"] == [False]


PARTS = st.sampled_from(
    [
        *("subscriptions", "s", "resourceGroups", "RG", "rg2", "providers", "Microsoft.MachineLearningServices"),
        *("workspaces", "ws", "computes", "c", "Microsoft.Compute", " ", "", "İ"),
    ]
)
WHOLE = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.MachineLearningServices/workspaces/ws/computes/c"
IDS = st.one_of(
    st.lists(PARTS, max_size=11).map("/".join).map(lambda text: f"/{text}"),
    st.builds(
        lambda depth, end, change: change("/".join(WHOLE.split("/")[: depth + 1]) + end),
        st.integers(0, 10),
        st.sampled_from(["", "/", "2", "/x", "/x/y", "/providers/A.B/c/d", "//", " "]),
        st.sampled_from([str, str.upper, str.lower]),
    ),
    st.sampled_from(["/", "", "x", *ODD_TEXTS, "/providers/Microsoft.Management/managementGroups/m"]),
)
IDENTITY = Probe(
    "ids",
    "roles",
    segments="ids.segments(input.resource.one)",
    under="ids.is_at_or_under(input.resource.one, input.resource.other)",
    folded="[id | is_string(input.resource.one); id := ids.folded(input.resource.one)]",
    guid="roles.guid(input.resource.one)",
    subscription="ids.subscription(input.resource.one)",
    workspace="ids.workspace_id(input.resource.one)",
)


@LAW
@given(IDS | ANYTHING, IDS)
def test_ids_are_read_the_same_in_both_languages(one: object, other: str) -> None:
    """Rego knows no grammar of the segments: there the Python is stricter, never laxer."""
    rego = IDENTITY(document_of(one=one, other=other))

    parts = ids.parts_of(one)
    assert rego["segments"] == ([] if parts is None else [list(parts)])
    assert rego["guid"] == [ids.guid_of(one)]
    if not isinstance(one, str):
        assert rego == {"segments": [], "under": [], "folded": [[]], "guid": [""], "subscription": [], "workspace": []}
        return
    if ids.is_at_or_under(one, other) or (ids.segments(one) is not None and ids.segments(other) is not None):
        assert rego["under"] == ([True] if ids.is_at_or_under(one, other) else [])
    assert rego["folded"] == [[ids.fold_id(one)]]
    if ids.segments(one) is not None:
        scopes, workspace = ids.scopes_of(one), ids.workspace_of(one)
        assert rego["subscription"] == ([scopes[0].rpartition("/")[2]] if scopes else [])
        assert rego["workspace"] == ([workspace] if workspace else [])


NUMBERS = Probe("numbers", whole="numbers.whole(input.resource.value)")
COUNTS = st.one_of(
    ANYTHING,
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.integers(0, 2**40).map(float),
    st.text(alphabet="019-+. e", max_size=11),
    st.sampled_from([999_999_999, 10**9, 999_999_999.0, 0.5, -0.0, "999999999", "1000000000", "000000001", "٣", "1\n"]),
)


@LAW
@given(COUNTS)
def test_counts_are_the_same_in_both_languages(value: object) -> None:
    """Numbers, whole or not, texts of digits and near them, other types; at most nine digits."""
    count = parse_whole_number(value)

    assert NUMBERS(document_of(value=value))["whole"] == ([] if count is None else [count])


PERMISSIONS = Probe(
    "permissions",
    matches="{pattern | some pattern in input.resource.patterns; "
    "permissions.covers(lower(pattern), lower(input.resource.action))}",
    granted="permissions.granted(input.resource.permissions, [input.resource.action])[0].granted",
)
ACTION = st.sampled_from(
    [
        *(f"Microsoft.MachineLearningServices/workspaces/computes/{end}" for end in ("write", "start/action", "")),
        *("a", "", "/", "\\^$.|?+()[]{}", "a\nb", "Microsoft.Authorization/roleAssignments/write", "*", "é"),
    ]
)


@LAW
@given(st.lists(patterns() | ACTION, max_size=6), st.lists(BLOCKS | ODD, max_size=3) | ODD, patterns() | ACTION)
def test_permissions_are_the_same_in_both_languages(several: list[str], blocks: object, action: str) -> None:
    """Patterns with stars anywhere, blocks of any shape, conditions: one result of three."""
    rego = PERMISSIONS(document_of(patterns=several, permissions=blocks, action=action))

    assert set(rego["matches"][0]) == {pattern for pattern in several if action_matches(pattern, action)}
    assert rego["granted"] == [granted(blocks, action)]
