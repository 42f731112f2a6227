"""Lists that ARM gives out page by page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

from policyeng.audit.collecting.azure.client import Client, Loss
from policyeng.models import JsonObject
from policyeng.strict.json_text import shortened

#: More pages than these have no list.
_MOST = 10_000


class Page(NamedTuple):
    """Some entries of a list."""

    entries: list[object]


def pages(client: Client, path: str, query: Mapping[str, str]) -> Iterator[Page | Loss]:
    """The pages of a list; a loss comes last, and says what is missing behind the pages before it."""
    answer = client.get(path, query)
    seen = set[str]()
    while True:
        if isinstance(answer, Loss):
            yield answer
            return
        entries = answer.get("value")
        if not isinstance(entries, list):
            yield Loss("the answer has no `value` that is a list")
            return
        yield Page(entries)
        following = answer.get("nextLink")
        if not following:
            return
        address = _followed(following, client.endpoint)
        if isinstance(address, Loss):
            yield address
            return
        if address in seen or len(seen) > _MOST:
            yield Loss("its pages never end: a `nextLink` leads back to a page before")
            return
        seen.add(address)
        answer = _behind(client.get(address))


def _followed(link: object, endpoint: str) -> str | Loss:
    """The address of the next page; a token must not be sent to another host."""
    if not isinstance(link, str):
        return Loss("`nextLink` is no address")
    address = urljoin(endpoint, link)
    if urlsplit(address)[:2] != urlsplit(endpoint)[:2]:
        return Loss(f"the next page is on another host, `{shortened(urlsplit(address).netloc)}`, and was not asked for")
    return address


def _behind(answer: JsonObject | Loss) -> JsonObject | Loss:
    return Loss(f"a further page: {answer.reason}") if isinstance(answer, Loss) else answer
