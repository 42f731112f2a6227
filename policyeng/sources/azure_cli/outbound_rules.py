"""The outbound rules of a managed network: a list of them with names there, a map by name in ARM.

Source: `_schema/workspace/networking.py` and `entities/_workspace/networking.py` of azure-ai-ml 1.35.2.
"""

from __future__ import annotations

from policyeng.models import JsonObject
from policyeng.sources.azure_cli.values import listed, word
from policyeng.sources.mapping import Field, UnfitError, boolean, mapped, text

_SAYS = "a list of rules, each with `name`, `type` and `destination`"
_RULE = (
    Field("/type", "/type", word("FQDN", "PrivateEndpoint", "ServiceTag")),
    Field("/category", "/category", word("Required", "Recommended", "UserDefined", "Dependency")),
    Field("/status", "/status", text),
    Field("/fqdns", "/fqdns", listed),
    Field("/parent_rule_names", "/parentRuleNames", listed),
)
_DESTINATION = (
    Field("/destination/service_resource_id", "/destination/serviceResourceId", text),
    Field("/destination/subresource_target", "/destination/subresourceTarget", text),
    Field("/destination/spark_enabled", "/destination/sparkEnabled", boolean),
    Field("/destination/service_tag", "/destination/serviceTag", text),
    Field("/destination/protocol", "/destination/protocol", text),
    Field("/destination/port_ranges", "/destination/portRanges"),
    Field("/destination/address_prefixes", "/destination/addressPrefixes", listed),
)


def outbound_rules(value: object) -> object:
    """The rules by their names, in ARM shape.

    Raises:
        UnfitError: they are no list of rules.
    """
    # The SDK prints an empty object where there is none.
    entries = listed(value) if value != {} else []
    return dict(_named(entry) for entry in entries) if isinstance(entries, list) else {}


def _named(rule: object) -> tuple[str, JsonObject]:
    if not isinstance(rule, dict) or not isinstance(rule.get("name"), str):
        raise UnfitError(_SAYS)
    direct = isinstance(rule.get("destination"), str)
    rows = (*_RULE, Field("/destination", "/destination", text)) if direct else (*_RULE, *_DESTINATION)
    found = mapped(rows, rule, "")
    if found.unreadable:
        raise UnfitError(f"{_SAYS}: {next(iter(found.unreadable.values()))}")
    return rule["name"], {"category": "UserDefined", **found.resource}
