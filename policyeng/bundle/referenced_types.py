"""The ARM types outside `facts.coverage.LISTED` that the text of a policy names."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from policyeng.bundle.analysis import ModuleAnalysis
from policyeng.bundle.policy_types import Policy
from policyeng.facts.coverage import SPELLED, TYPE
from policyeng.later import lazy_pattern
from policyeng.models import lowered

_TYPE = lazy_pattern(TYPE)
_NAMESPACE = lazy_pattern(r"microsoft\.\w+")
#: Namespaces of types that every snapshot lists, and of scopes; alone they name no other type.
_KNOWN = frozenset((*(kind.partition("/")[0] for kind in SPELLED), "microsoft.billing", "microsoft.management"))
#: What ends the name of an action, which looks like a type otherwise.
_ACTIONS = frozenset({"action", "delete", "read", "write"})
#: By members of resources that hold an id, the type of what has it.
_REFERENCES = {
    "applicationInsights": "microsoft.insights/components",
    "containerRegistry": "microsoft.containerregistry/registries",
    "keyVault": "microsoft.keyvault/vaults",
    "keyVaultArmId": "microsoft.keyvault/vaults",
    "primaryUserAssignedIdentity": "microsoft.managedidentity/userassignedidentities",
    "privateEndpoint": "microsoft.network/privateendpoints",
    "storageAccount": "microsoft.storage/storageaccounts",
}

#: What in the text of a Python module may name a type, or a namespace.
_NAMED = lazy_pattern(r"""["'](?:[^"'\n]*providers)?/?([A-Za-z]\w*+\.[\w./]++)""")
_REFERRING = lazy_pattern(rf"\b(?:{'|'.join(_REFERENCES)})\b")


def find_types(texts: Iterable[str]) -> Iterator[str]:
    """Yield the lower-case types, and namespaces without one, that texts name, also as parts of ids."""
    for text in texts:
        parts = lowered(text).strip("/").split("/")
        if "providers" in parts[:-1]:
            parts = parts[len(parts) - parts[::-1].index("providers") :]
            parts = [parts[0], *parts[1::2]]
        kind = "/".join(parts)
        if kind not in SPELLED and kind not in _KNOWN and parts[-1] not in _ACTIONS:
            yield from (kind,) if _TYPE.fullmatch(kind) or _NAMESPACE.fullmatch(kind) else ()


def find_referenced(words: Iterable[str]) -> Iterator[str]:
    """Yield the lower-case types of what a policy looks up by the ids in members of resources, from the words in it."""
    known = frozenset(words)
    if "by_id" in known:
        yield from (_REFERENCES[word] for word in known & _REFERENCES.keys())


def names_types(policies: Iterable[Policy], modules: Iterable[ModuleAnalysis]) -> bool:
    """Return whether any policy may name a type that it looks up, which takes less time than to find out which."""
    if any(module.types or not module.words.isdisjoint(_REFERENCES) for module in modules):
        return True
    texts = (policy.python.text.decode(errors="replace") for policy in policies if policy.python)
    return any(_REFERRING.search(text) or any(find_types(_NAMED.findall(text))) for text in texts)


def types_in_python(tree: ast.AST) -> frozenset[str]:
    """Return the types that a Python module names, without those in headers of policies."""
    nodes = list(_outside_headers(tree))
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    words = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return frozenset((*find_types(texts), *find_referenced(texts | words)))


def _outside_headers(tree: ast.AST) -> Iterator[ast.AST]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        headers = node.decorator_list if isinstance(node, ast.FunctionDef) else []
        waiting += (below for below in ast.iter_child_nodes(node) if below not in headers)
        waiting += (part for header in headers for part in ast.walk(header) if isinstance(part, ast.Lambda))
