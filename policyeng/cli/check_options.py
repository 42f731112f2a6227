"""`policyeng check` with its options for typer; a plain run loads neither this module nor typer."""

from __future__ import annotations

from typing import get_type_hints

from policyeng.cli import check as checking
from policyeng.cli import options
from policyeng.cli.opa_options import with_opa
from policyeng.cli.signature_options import with_trust

# The command only names its options, so that it does not need typer; here the names are resolved.
checking.check.__annotations__ = get_type_hints(
    checking.check, {**vars(checking), "options": options}, include_extras=True
)
check = with_opa(with_trust(checking.check))
