"""Text of others in a message, so that no service makes more of it than text.

A message goes to mail, chats and webhooks, and each obeys something else: Markdown, `<!channel>`, `@everyone`, links.
What one of them could obey is written out as JSON escapes it, but for `@`, which addresses of owners have: what follows
it is parted from it by a space of no width, which Renovate does for the same reason.
"""

from __future__ import annotations

import re

from policyeng.report.escapes import visible

#: No name that Azure takes is longer than its id, and no id is of use that fills a screen.
LONGEST = 200
_OBEYED = re.compile(r"[*`~|<>\[\]&\\#!$]|(?<![^\W_])_|_(?![^\W_])|:(?=//|[a-z][\w+-]*:)|(?<=\bwww)\.", re.IGNORECASE)
_MENTION = re.compile("@(?!\u200b)")


def plain(text: str, longest: int = LONGEST) -> str:
    """Text on one line that is shown as it stands, and cut where it is long."""
    shown = text if len(text) <= longest else f"{text[:longest]}…"
    written = visible(_OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", shown))
    return _MENTION.sub("@\u200b", written)
