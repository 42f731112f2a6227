"""Forms of ARM ids, as regular expressions that JSON Schema takes, which has no flag for letters of any case."""

from __future__ import annotations

import re

from policyeng.models import WORKSPACE_TYPE


def _any_case(text: str) -> str:
    return "".join(f"[{each}{each.upper()}]" if each.isalpha() else re.escape(each) for each in text)


_NAME = r"[A-Za-z0-9_.()-]+"
_SUBSCRIPTION = f"{_any_case('/subscriptions/')}{_NAME}"
_GROUP = f"{_SUBSCRIPTION}{_any_case('/resourcegroups/')}{_NAME}"
#: A resource group or a subscription, or nothing.
GROUP = f"^({_GROUP}|{_SUBSCRIPTION})?$"
#: A workspace by id or name, or nothing.
WORKSPACE = f"^({_GROUP}{_any_case(f'/providers/{WORKSPACE_TYPE}/')}{_NAME}|{_NAME})?$"
#: A subscription, or what lies in one.
WITHIN = f"^{_any_case('/subscriptions/')}[^/]+(/[^/]+/[^/]+)*$"
