"""A real Chromium for tests of pages: it records what a page requested, and what went wrong in it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, Dialog, Page, sync_playwright

#: Luminance and contrast as WCAG 2.2 defines them, over every text that is to be seen: those below 4.5, each once.
FAINT = """
() => {
  const channels = (color) => color.match(/[\\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => [r, g, b]
    .map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = channels(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const faint = new Set();
  for (const element of document.querySelectorAll("body *")) {
    const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!hasText || !element.checkVisibility() || element.closest("svg, noscript, script, :disabled")) continue;
    const [one, other] = [luminance(channels(getComputedStyle(element).color)), luminance(behind(element))];
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (contrast < 4.5) faint.add(`${element.tagName} ${element.className}: ${contrast.toFixed(2)}`);
  }
  return [...faint];
}
"""


@dataclass
class Visit:
    """A page, and what happened in it."""

    page: Page
    requested: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def dismiss(self, dialog: Dialog) -> None:
        """Close a dialog, which no page of ours opens."""
        self.said.append(dialog.message)
        dialog.dismiss()

    def require_quiet(self, address: str) -> None:
        """Fail unless the page requested nothing but itself, and logged nothing."""
        assert self.requested == [address]
        assert self.said == []


@contextmanager
def chromium() -> Iterator[Browser]:
    """The system's Chromium, without a window."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert path, "these tests need Chromium; apt-get install chromium"
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def visit(browser: Browser, scripts: bool = True, dark: bool = False) -> Iterator[Visit]:
    """A page of a new profile; what it requests, logs or does of itself is recorded."""
    context = browser.new_context(java_script_enabled=scripts, color_scheme="dark" if dark else "light")
    context.set_default_timeout(10_000)
    visiting = Visit(context.new_page())
    visiting.page.on("request", lambda request: visiting.requested.append(request.url))
    visiting.page.on("console", lambda message: visiting.said.append(message.text))
    visiting.page.on("pageerror", lambda error: visiting.said.append(str(error)))
    visiting.page.on("dialog", visiting.dismiss)
    try:
        yield visiting
    finally:
        context.close()


def file_of(folder: Path, text: str) -> str:
    """The address of a page that was written to a file."""
    path = folder / "report.html"
    path.write_text(text, encoding="utf-8")
    return path.as_uri()
