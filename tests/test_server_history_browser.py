"""The history in a real browser, from a real server: sign in, look, sign out."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.audits import Audited
from tests.browser import FAINT, chromium, visit
from tests.bundles import workspace
from tests.command import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for the module."""
    with chromium() as running:
        yield running


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A server of an estate with two runs and a hostile name in it, which requires tokens."""
    audited = Audited(tmp_path)
    audited.audit()
    hostile = {**workspace("three", x=1, owner="o"), "tags": {"owner": "<img src=x onerror=alert(1)>"}}
    audited.write("b", json.dumps({"snapshotVersion": 1, "resources": [hostile]}).encode())
    audited.audit()
    audited.close()
    (tmp_path / "tokens").write_text(f"alice history sha256:{hashlib.sha256(b'open').hexdigest()}\n", encoding="utf-8")
    with serving("--store", audited.url, "--tokens", str(tmp_path / "tokens"), folder=tmp_path) as url:
        yield url


@contextmanager
def serving(*arguments: str, folder: Path) -> Iterator[str]:
    """A server in a process of its own, on a free port; gives its address."""
    line = [sys.executable, "-m", "policyeng", "serve", "--port", "0", *arguments]
    with subprocess.Popen(
        line, cwd=folder, env={"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().rpartition(" ")[2].strip()
        finally:
            server.terminate()


def test_one_signs_in_looks_and_signs_out(browser: Browser, address: str) -> None:
    """The pages load nothing, the browser keeps the cookie from scripts, and going back shows nothing."""
    with visit(browser) as visiting:
        page = visiting.page
        page.goto(f"{address}/estates/production")
        assert page.url == f"{address}/sign-in"
        expect(page.get_by_label("Token")).to_be_focused()
        page.keyboard.type("wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("unknown token")

        page.get_by_label("Token").fill("open")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Estates")
        assert page.evaluate(FAINT) == []
        [cookie] = page.context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/")
        assert page.evaluate("document.cookie") == ""

        page.get_by_role("link", name="production").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("production: 2 failures")
        page.get_by_label("Group by").select_option("resource")
        expect(page.get_by_role("status")).to_have_text("2 of 8 findings, in 2 groups; passes are hidden")
        page.get_by_label("Group by").select_option("owner")
        expect(page.locator("#table .group").first).to_contain_text("<img src=x onerror=alert(1)>")
        assert page.locator("img").count() == 0
        page.get_by_role("link", name="All estates").click()
        page.locator("summary").click()
        page.get_by_role("link", name="run 1").click()
        expect(page.get_by_text("Run 1 of estate production")).to_be_visible()

        page.get_by_role("button", name="Sign out").click()
        assert page.url == f"{address}/sign-in"
        page.goto(f"{address}/runs/1")
        assert page.url == f"{address}/sign-in"
        assert page.context.cookies() == []

    assert {url.removeprefix(address) for url in visiting.requested} == {
        "/estates/production",
        "/sign-in",
        "/",
        "/runs/1",
        "/sign-out",
    }
    assert [line for line in visiting.said if "401" not in line] == []


def test_no_frame_of_another_page_shows_it(browser: Browser, address: str, tmp_path: Path) -> None:
    """No one can be made to click on what they do not see."""
    outside = tmp_path / "outside.html"
    outside.write_text(f'<iframe src="{address}/sign-in"></iframe>', encoding="utf-8")
    with visit(browser) as visiting:
        visiting.page.goto(outside.as_uri())
        visiting.page.wait_for_load_state("networkidle")
        frame = visiting.page.frames[1]

        assert frame.url.startswith("chrome-error:")
        assert any("frame-ancestors" in line or "X-Frame-Options" in line for line in visiting.said)
