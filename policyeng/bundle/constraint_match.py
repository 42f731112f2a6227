"""Which documents a Gatekeeper constraint applies to, by the `match` in it.

Source: https://open-policy-agent.github.io/gatekeeper/website/docs/howto#the-match-field, and `gator`, which applies
constraints to documents outside of a cluster, too: one that states no namespace is in none of those that are excluded,
and in any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from policyeng.models import JsonObject

#: Kinds that are in no namespace. Source: `kubectl api-resources --namespaced=false` of Kubernetes 1.33.
_CLUSTER_SCOPED = {
    "": {"ComponentStatus", "Namespace", "Node", "PersistentVolume"},
    "admissionregistration.k8s.io": {
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
    },
    "apiextensions.k8s.io": {"CustomResourceDefinition"},
    "apiregistration.k8s.io": {"APIService"},
    "certificates.k8s.io": {"CertificateSigningRequest", "ClusterTrustBundle"},
    "flowcontrol.apiserver.k8s.io": {"FlowSchema", "PriorityLevelConfiguration"},
    "networking.k8s.io": {"IPAddress", "IngressClass", "ServiceCIDR"},
    "node.k8s.io": {"RuntimeClass"},
    "policy": {"PodSecurityPolicy"},
    "rbac.authorization.k8s.io": {"ClusterRole", "ClusterRoleBinding"},
    "resource.k8s.io": {"DeviceClass", "ResourceSlice"},
    "scheduling.k8s.io": {"PriorityClass"},
    "storage.k8s.io": {"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"},
}
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_SCOPES = ("*", "Cluster", "Namespaced")


class LabelRequirement(NamedTuple):
    """One condition on a label: an operator of Kubernetes, and the values for `In` and `NotIn`."""

    key: str
    operator: str
    values: frozenset[str]

    def holds(self, labels: Mapping[str, object]) -> bool:
        """Return whether labels satisfy it; what has no such label satisfies `NotIn`."""
        is_listed = labels.get(self.key) in self.values
        match self.operator:
            case "In":
                return is_listed
            case "NotIn":
                return not is_listed
            case "Exists":
                return self.key in labels
        return self.key not in labels


class KindsEntry(NamedTuple):
    """One entry of `kinds`: groups and kinds, of which `*`, or none, is any."""

    groups: frozenset[str]
    kinds: frozenset[str]

    def holds(self, group: str, kind: str) -> bool:
        """Return whether a kind of a group is listed."""
        pairs = ((self.groups, group), (self.kinds, kind))
        return all(not listed or "*" in listed or name in listed for listed, name in pairs)


class ConstraintMatch(Struct, frozen=True, kw_only=True):
    """The `match` of a constraint.

    Attributes:
        namespaces, excluded_namespaces, name: names that may begin or end in `*`; empty for any.
        scope: `*`, `Cluster` or `Namespaced`.
        labels: of the document.
        namespace_labels: of its namespace, or of itself if it is one; None without a `namespaceSelector`.
    """

    kinds: tuple[KindsEntry, ...] = ()
    scope: str = "*"
    namespaces: tuple[str, ...] = ()
    excluded_namespaces: tuple[str, ...] = ()
    labels: tuple[LabelRequirement, ...] = ()
    namespace_labels: tuple[LabelRequirement, ...] | None = None
    name: str = ""

    @classmethod
    def of(cls, match: JsonObject) -> ConstraintMatch:
        """Return the `match` of a constraint as it is written.

        Raises:
            ValueError: it is not well formed; in words.
        """
        unknown = sorted(match.keys() - _MEMBERS)
        if unknown:
            raise ValueError(f"`{unknown[0]}` of `match` is not known")
        scope = match.get("scope") or "*"
        if scope not in _SCOPES:
            raise ValueError(f"the `scope` is `{scope}`; write one of {', '.join(_SCOPES)}")
        entries = match.get("kinds") or []
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise ValueError("`kinds` is not a list of `apiGroups` and `kinds`")
        selector = match.get("namespaceSelector")
        return cls(
            kinds=tuple(
                KindsEntry(frozenset(_texts(entry, "apiGroups")), frozenset(_texts(entry, "kinds")))
                for entry in entries
            ),
            scope=scope,
            namespaces=_texts(match, "namespaces"),
            excluded_namespaces=_texts(match, "excludedNamespaces"),
            labels=_requirements(match.get("labelSelector"), "labelSelector"),
            namespace_labels=None if selector is None else _requirements(selector, "namespaceSelector"),
            name=str(match.get("name") or ""),
        )

    def unknown(self, document: object, namespaces: Mapping[str, Mapping[str, object]]) -> str | None:
        """Return why it is not known whether a constraint applies to a document; empty if it does, None if not.

        Args:
            document: of Kubernetes.
            namespaces: the labels of the namespaces that are known.
        """
        stated = document if isinstance(document, dict) else {}
        metadata = _object(stated, "metadata")
        group = _text(stated, "apiVersion").rpartition("/")[0]
        kind, name, namespace = _text(stated, "kind"), _text(metadata, "name"), _text(metadata, "namespace")
        labels = _object(metadata, "labels")
        is_namespace = kind == "Namespace" and not group
        home = name if is_namespace else namespace
        applies = (
            (not self.kinds or any(entry.holds(group, kind) for entry in self.kinds))
            and self._is_in_scope(group, kind, namespace)
            and (not home or not self.namespaces or _is_listed(home, self.namespaces))
            and not (home and _is_listed(home, self.excluded_namespaces))
            and all(requirement.holds(labels) for requirement in self.labels)
            and (not self.name or _is_listed(name, (self.name,)))
        )
        if not applies:
            return None
        if self.namespace_labels is None or not home:
            return ""
        known = labels if is_namespace else namespaces.get(home)
        if known is None:
            what = f"the constraint selects namespaces by their labels, and those of `{home}` are not known"
            return f"{what}; add its `Namespace` to the inputs"
        return "" if all(requirement.holds(known) for requirement in self.namespace_labels) else None

    def _is_in_scope(self, group: str, kind: str, namespace: str) -> bool:
        is_cluster_scoped = not namespace and kind in _CLUSTER_SCOPED.get(group, ())
        if self.scope == "Cluster":
            return is_cluster_scoped or not namespace
        return self.scope != "Namespaced" or not is_cluster_scoped


def labels_of_namespaces(documents: Iterable[object]) -> dict[str, Mapping[str, object]]:
    """Return the labels of the namespaces among documents, by name; each has the label of its name."""
    found: dict[str, Mapping[str, object]] = {}
    for document in documents:
        if isinstance(document, dict) and document.get("kind") == "Namespace" and document.get("apiVersion") == "v1":
            metadata = _object(document, "metadata")
            name = _text(metadata, "name")
            found[name] = {"kubernetes.io/metadata.name": name, **_object(metadata, "labels")}
    return found


_MEMBERS = frozenset(
    {"source", "kinds", "scope", "namespaces", "excludedNamespaces", "labelSelector", "namespaceSelector", "name"}
)


def _text(holder: JsonObject, key: str) -> str:
    value = holder.get(key)
    return value if isinstance(value, str) else ""


def _is_listed(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a name is one of those that may begin or end in `*`."""
    return any(_fits(name, pattern) for pattern in patterns)


def _fits(name: str, pattern: str) -> bool:
    if pattern.startswith("*") and pattern.endswith("*"):
        return pattern.strip("*") in name
    if pattern.endswith("*"):
        return name.startswith(pattern[:-1])
    return name.endswith(pattern[1:]) if pattern.startswith("*") else name == pattern


def _object(holder: JsonObject, key: str) -> JsonObject:
    found: Any = holder.get(key)
    return found if isinstance(found, dict) else {}


def _texts(holder: JsonObject, key: str) -> tuple[str, ...]:
    values = holder.get(key) or []
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"`{key}` is not a list of names")
    return tuple(values)


def _requirements(selector: object, name: str) -> tuple[LabelRequirement, ...]:
    if selector is None:
        return ()
    labels = selector.get("matchLabels") or {} if isinstance(selector, dict) else None
    expressions = selector.get("matchExpressions") or [] if isinstance(selector, dict) else None
    if not (isinstance(labels, dict) and isinstance(expressions, list)):
        raise ValueError(  # noqa: TRY004  # a fault of the document, in words
            f"`{name}` is not a selector with `matchLabels` and `matchExpressions`"
        )
    found = [LabelRequirement(str(key), "In", frozenset({str(value)})) for key, value in labels.items()]
    for expression in expressions:
        if not isinstance(expression, dict) or expression.get("operator") not in _OPERATORS:
            raise ValueError(f"an operator in `{name}` is not one of {', '.join(_OPERATORS)}")
        values = frozenset(_texts(expression, "values"))
        if (expression["operator"] in ("In", "NotIn")) != bool(values):
            raise ValueError(f"`{expression['operator']}` in `{name}` has the wrong number of values")
        found.append(LabelRequirement(str(expression.get("key", "")), expression["operator"], values))
    return tuple(found)
