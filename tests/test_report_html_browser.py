"""The HTML report in a real browser: what a reader sees and does, and what a hostile name cannot do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from policyeng.report.html import render
from tests.browser import FAINT, Visit, chromium, file_of, visit
from tests.report_pages import ABOUT, HOSTILE_ABOUT, many
from tests.report_samples import CLUSTER, ISOLATION, SAMPLES, evaluation_of

pytestmark = pytest.mark.slow

Open = Callable[..., Visit]
OUTCOMES = ("fail", "error", "unknown", "exempt", "pass")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for the module."""
    with chromium() as running:
        yield running


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Open a page in a profile of its own; in the end it must have requested and reported nothing."""
    with ExitStack() as stack:
        visits = []

        def opening(text: str = "", *, scripts: bool = True, dark: bool = False) -> Visit:
            visiting = stack.enter_context(visit(browser, scripts, dark))
            address = file_of(tmp_path, text or render(SAMPLES["every outcome"], about=ABOUT))
            visiting.page.goto(address)
            visits.append((visiting, address))
            return visiting

        yield opening
        for visiting, address in visits:
            visiting.require_quiet(address)


def column(page: Page, number: int) -> list[str]:
    """The texts of the shown findings in a column, from 1."""
    return page.locator(f"#table tbody.finding > tr:first-child > :nth-child({number})").all_inner_texts()


def only(page: Page, name: str, *ticked: str) -> None:
    """Tick these boxes of a group and no others."""
    for box in page.locator(f"input[name={name}]").all():
        box.set_checked(box.locator("xpath=..").inner_text().strip() in ticked)


def test_a_page_shows_what_needs_a_reader_first(opened: Open) -> None:
    """Passes are counted and not shown until requested; the reasons are a key away."""
    page = opened().page

    expect(page.get_by_role("status")).to_contain_text("7 of 10 findings")
    assert page.locator("#summary .card.pass dd").inner_text() == "3"
    assert column(page, 1) == ["fail", "fail", "exempt", "fail", "error", "unknown", "fail"]
    assert page.locator("#table .more:visible").count() == 0

    page.get_by_label("pass", exact=True).check()
    expect(page.get_by_role("status")).to_contain_text("10 of 10 findings")


def test_passes_are_shown_by_a_button_that_states_it(opened: Open) -> None:
    """The count states that passes are hidden; a key shows them and hides them again."""
    page = opened().page
    status = page.get_by_role("status")
    expect(status).to_have_text("7 of 10 findings; passes are hidden")

    page.get_by_role("button", name="Show passes").focus()
    page.keyboard.press("Enter")
    expect(status).to_have_text("10 of 10 findings")
    expect(page.get_by_label("pass", exact=True)).to_be_checked()

    page.get_by_role("button", name="Hide passes").click()
    expect(status).to_have_text("7 of 10 findings; passes are hidden")


def test_details_show_everything(opened: Open) -> None:
    """Denials with path, actual and expected, what was not decided, place, since, remedy and source."""
    page = opened().page
    page.get_by_role("button", name="Details of AML-ISO-101 on ws/train-gpu").click()

    shown = page.locator("#table .more:visible").inner_text()
    for words in (
        "the VM size shares its host",
        "/properties/properties/vmSize",
        "found Standard_DS3_v2, expected ",
        "Standard_E64is_v3",
        "unknown: the quota of the family was not collected",
        "samples/inference.json:48:1",
        "research",
        "Choose one of the isolated sizes",
        '001 "Compute isolation"',
        "mcsb-v1 DP-1",
    ):
        assert words in shown
    page.get_by_role("button", name="Show all details").click()
    everything = page.locator("#table").inner_text()
    assert "run 3, 2026-05-23 00:00:00 UTC" in everything
    assert "exempt until 2026-12-31 by ml-platform@example.com" in everything


def test_columns_sort_both_ways_and_show_it(opened: Open) -> None:
    """By the worst first where there is a worst, else by the alphabet; a second time the other way."""
    page = opened().page
    head = page.locator("#table thead th")

    page.get_by_role("button", name="Policy", exact=True).click()
    policies = column(page, 3)
    assert policies == sorted(policies)
    assert head.nth(2).get_attribute("aria-sort") == "ascending"

    page.get_by_role("button", name="Policy", exact=True).click()
    assert column(page, 3) == policies[::-1]
    assert head.nth(2).get_attribute("aria-sort") == "descending"

    page.get_by_role("button", name="Severity", exact=True).click()
    assert column(page, 2) == ["critical", "high", "high", "medium", "medium", "medium", "low"]
    assert head.nth(2).get_attribute("aria-sort") is None

    page.get_by_role("button", name="Since", exact=True).click()
    page.get_by_role("button", name="Since", exact=True).click()
    assert column(page, 6)[0] == "2026-05-23"


@pytest.mark.parametrize(
    ("field", "value", "policies"),
    [
        ("policy", "AML-NET-001", ["AML-NET-001"]),
        ("area", "network", ["AML-NET-001", "AML-NET-104"]),
        ("control", "mcsb-v1 NS-1", ["AML-NET-104"]),
        ("owner", "research", ["AML-ISO-101", "AML-SKU-104"]),
        ("type", "microsoft.authorization/roleassignments", ["AML-RBAC-103"]),
    ],
)
def test_choices_filter(opened: Open, field: str, value: str, policies: list[str]) -> None:
    """The rest has that value; the count is announced to screen readers."""
    page = opened().page
    page.locator(f"select[name={field}]").select_option(value)

    expect(page.get_by_role("status")).to_contain_text(f"{len(policies)} of 10 findings")
    assert sorted(column(page, 3)) == policies


def test_text_outcome_and_severity_filter_together(opened: Open) -> None:
    """Every word has to be somewhere in the finding: in a value, in a reason or in the remedy's policy."""
    page = opened().page
    page.get_by_label("Text").fill("STANDARD_ds3 critical")
    expect(page.get_by_role("status")).to_contain_text("1 of 10 findings")

    page.get_by_label("Text").fill("")
    only(page, "outcome", "unknown", "error")
    expect(page.get_by_role("status")).to_contain_text("2 of 10 findings")
    only(page, "severity", "low")
    expect(page.get_by_role("status")).to_contain_text("0 of 10 findings")

    page.get_by_role("button", name="Reset").click()
    expect(page.get_by_role("status")).to_contain_text("7 of 10 findings")


@pytest.mark.parametrize(
    ("by", "first", "count"),
    [
        ("resource", "computes/train-gpu", 4),
        ("policy", "AML-ISO-101 Regulated work", 7),
        ("control", "mcsb-v1 DP-1", 4),
        ("owner", "research", 2),
    ],
)
def test_groups_open_by_key_and_keep_the_focus(opened: Open, by: str, first: str, count: int) -> None:
    """Each has its counts; one with the most severe failure is the first."""
    page = opened().page
    page.get_by_label("Group by").select_option(by)
    expect(page.get_by_role("status")).to_contain_text(f"in {count} groups")
    assert column(page, 1) == []
    head = page.locator("#table .group button").first
    expect(head).to_contain_text(first)

    head.focus()
    page.keyboard.press("Enter")

    expect(page.locator("#table .group button").first).to_be_focused()
    expect(page.locator("#table .group button").first).to_have_attribute("aria-expanded", "true")
    assert "critical" in column(page, 2)
    page.keyboard.press("Space")
    assert column(page, 1) == []


def test_everything_can_be_done_by_key(opened: Open) -> None:
    """The first Tab skips to the findings; headers sort and details open by Enter and Space; the focus is seen."""
    page = opened().page
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the findings")).to_be_focused()
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_label("Text")).to_be_focused()

    reached = []
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.ariaLabel || document.activeElement.textContent.trim()"))
        if reached[-1] == "Severity":
            page.keyboard.press("Enter")
        if reached[-1].startswith("Details of AML-ISO-101"):
            page.keyboard.press("Space")
            break
    assert reached.index("Reset") < reached.index("Outcome") < reached.index("Severity")
    expect(page.locator("#table .more:visible")).to_contain_text("the VM size shares its host")


def test_a_screen_reader_finds_its_way(opened: Open) -> None:
    """Landmarks, headings, a table with headers of columns and rows, charts with a name, a live count."""
    page = opened().page
    tree = page.locator("body").aria_snapshot().replace("- '", "- ")

    for line in (
        "- banner:",
        '- navigation "Sections":',
        "- main:",
        '- heading "production: 4 failures, 1 exempt, 1 unknown, 1 error, 3 problems" [level=1]',
        '- heading "Findings" [level=2]',
        '- search "Findings":',
        "- status: 7 of 10 findings; passes are hidden",
        '- table "By severity":',
        '- rowheader "critical"',
        '- img "Compliance over runs 12 runs: strict compliance from 61.00 % to 72.00 %',
        '- columnheader "Outcome":',
        '- rowheader "Details of AML-ISO-101 on ws/train-gpu AML-ISO-101":',
        '- group "Outcome":',
        '- checkbox "unknown" [checked]',
        '- navigation "Pages of findings":',
    ):
        assert line in tree, line
    assert page.locator("html").get_attribute("lang") == "en"


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_has_contrast(opened: Open, dark: bool) -> None:
    """At least 4.5 to 1 in either scheme (WCAG 2.2, 1.4.3 AA), with everything unfolded."""
    page = opened(dark=dark).page
    for box in page.locator("input[type=checkbox]").all():
        box.check()
    page.get_by_role("button", name="Show all details").click()
    page.locator("summary").first.click()

    assert page.evaluate(FAINT) == []


def test_colours_follow_the_system_until_the_reader_chooses_others(opened: Open) -> None:
    """The choice of the reader is kept for the next visit."""
    background = "getComputedStyle(document.body).backgroundColor"
    page = opened(dark=True).page
    assert page.evaluate(background) == "rgb(20, 23, 28)"
    page.emulate_media(color_scheme="light")
    assert page.evaluate(background) == "rgb(255, 255, 255)"

    page.get_by_label("Colors").select_option("dark")
    assert page.evaluate(background) == "rgb(20, 23, 28)"
    assert page.evaluate("localStorage.getItem('policyeng-theme')") == "dark"


def printing(page: Page) -> str:
    """The page on paper."""
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    return page.locator("#findings").inner_text()


def test_print_has_the_findings_by_policy_with_each_fix_once(opened: Open) -> None:
    """On white, with the values, without the controls; afterwards the page is as it was."""
    page = opened(dark=True).page
    assert page.pdf(format="A4").startswith(b"%PDF")
    assert page.locator("#printed > *").count() == 0

    words = printing(page)

    assert page.locator(".printed").count() == 7
    assert page.locator(".printed .remedy").count() == 7
    assert "found Standard_DS3_v2, expected " in words
    assert "exempt until 2026-12-31 by ml-platform@example.com" in words
    assert "7 of 10 findings; passes are hidden" in words
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    for hidden in (page.get_by_role("search"), page.locator("#table"), page.locator("#policies")):
        expect(hidden).to_be_hidden()

    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    expect(page.locator("#table tbody.finding")).to_have_count(7)
    expect(page.locator("#policies")).to_be_visible()


def test_print_keeps_the_groups_of_the_reader(opened: Open) -> None:
    """Each finding names its policy then, and the fixes are in the table of policies."""
    page = opened().page
    page.get_by_label("Group by").select_option("owner")
    expect(page.get_by_role("status")).to_contain_text("groups")

    words = printing(page)

    assert page.locator(".printed h3").all_inner_texts()[0] == "research 2 fail"
    assert "AML-ISO-101 Regulated work runs on an isolated VM size" in words
    assert "Choose one of the isolated sizes" in page.locator("#policies").inner_text()


def test_equal_reasons_are_printed_once(opened: Open) -> None:
    """With a line for each resource that they apply to."""
    clusters = [f"{CLUSTER}-{number}" for number in range(5)]
    same = [ISOLATION.model_copy(update={"resource": cluster, "unknowns": ()}) for cluster in clusters]
    page = opened(render(evaluation_of(same))).page

    words = printing(page)

    assert words.count("the VM size shares its host") == 1
    assert words.count("Choose one of the isolated sizes") == 1
    assert "5 resources" in words
    assert all(f"train-gpu-{number}" in words for number in range(5))


@pytest.mark.parametrize("state", ["folded", "unfolded"])
def test_nothing_is_wider_than_a_phone(opened: Open, state: str) -> None:
    """At 390 px no part of the page is cut or has to be scrolled sideways."""
    page = opened().page
    page.set_viewport_size({"width": 390, "height": 844})
    if state == "unfolded":
        page.get_by_role("button", name="Show all details").click()
        page.locator("summary").first.click()

    wide = """
    [...document.querySelectorAll("body *")]
      .filter((one) => one.checkVisibility() && !one.closest(".skip, .aside"))
      .filter((one) => one.getBoundingClientRect().right > 390 || (one.matches(".wide") && one.scrollWidth > 390))
      .map((one) => one.outerHTML.slice(0, 100))
    """
    assert page.evaluate(wide) == []
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_without_scripts_everything_is_readable(opened: Open) -> None:
    """Each finding with its details, passes folded away; nothing that would not work."""
    page = opened(scripts=False).page

    expect(page.locator("#every tbody.finding.fail")).to_have_count(4)
    expect(page.locator("#every .more").first).to_contain_text("/properties/properties/vmSize")
    expect(page.locator("#every details")).to_contain_text("Passes (3)")
    expect(page.locator("#browser")).to_be_hidden()
    expect(page.get_by_label("Colors")).to_be_hidden()
    page.locator("#every a").first.click()
    assert page.url.endswith("#policy-3") or "#policy-" in page.url


def test_a_reader_may_be_quicker_than_the_page(opened: Open) -> None:
    """A request before the result of the last one is drawn uses that result."""
    page = opened().page

    page.get_by_label("Group by").select_option("policy")
    expect(page.get_by_role("status")).to_contain_text("groups")
    page.evaluate(
        "() => { const by = document.querySelector('#browser form').elements.group;"
        " by.value = ''; by.dispatchEvent(new Event('input', {bubbles: true}));"
        " document.getElementById('unfold').click(); }"
    )
    expect(page.get_by_role("status")).not_to_contain_text("groups")
    expect(page.locator("#table .finding")).not_to_have_count(0)


@pytest.mark.parametrize("scripts", [True, False])
def test_hostile_names_do_nothing(opened: Open, scripts: bool) -> None:
    """No script, no element, no link of theirs; each character is shown."""
    page = opened(render(SAMPLES["hostile"], about=HOSTILE_ABOUT), scripts=scripts).page
    if scripts:
        for by in ("resource", "policy", "control", "owner", ""):
            page.get_by_label("Group by").select_option(by)
        page.get_by_role("button", name="Show all details").click()
        page.get_by_label("Text").fill("</script>")
        expect(page.get_by_role("status")).to_contain_text("4 of 4 findings")

    assert page.locator("img, iframe, object, a:not([href^='#'], .page)").count() == 0
    assert page.locator("body script").count() == 2
    shown = page.locator("#table" if scripts else "#every").inner_text()
    assert "<script>alert(1)</script>" in shown
    assert "\\u202e" in shown
    assert not {"\u202e", "\u2066", "\x00", "\x1b"} & set(shown)
    assert "onerror=pwned()" in shown


def test_twenty_thousand_findings_are_a_page_at_a_time(opened: Open) -> None:
    """The browser builds only what it shows; the file is a dozen megabytes at most."""
    evaluation, about = many(20_000)
    text = render(evaluation, about=about)
    assert len(text.encode()) < 12_000_000
    page = opened(text).page

    expect(page.get_by_role("status")).to_contain_text("2,858 of 20,000 findings")
    assert page.evaluate("document.querySelectorAll('*').length") < 10_000
    page.get_by_label("pass", exact=True).check()
    expect(page.get_by_role("status")).to_contain_text("20,000 of 20,000 findings")
    expect(page.locator("#page")).to_have_text("Page 1 of 200")
    page.get_by_role("button", name="Next").click()
    expect(page.locator("#page")).to_have_text("Page 2 of 200")
    page.get_by_label("Group by").select_option("owner")
    expect(page.get_by_role("status")).to_contain_text("20,000 of 20,000 findings, in 5 groups")
    page.locator("#table .group button").first.click()
    page.get_by_role("button", name="Next").click()
    expect(page.locator("#table .group")).to_have_count(1)  # the head of the group that continues
    expect(page.locator("#table .finding")).to_have_count(100)
