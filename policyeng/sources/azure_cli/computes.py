"""Compute targets: `az ml compute create --file`, and what `az ml compute show` prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from policyeng.errors import nearest
from policyeng.models import JsonObject, lowered
from policyeng.sources.arm_entry import stands_for_value, types_of
from policyeng.sources.azure_cli.compute_shapes import SHAPES, SUBNET_ID, UNSUPPORTED
from policyeng.sources.azure_cli.kinds import PROVIDER, Kind, identity, stated_id, unplaced
from policyeng.sources.azure_cli.shapes import placed, stands_for
from policyeng.sources.mapping import put
from policyeng.sources.reading import Placed, Refusal, Surroundings, spelled
from policyeng.sources.service_made import with_attachment
from policyeng.strict.json_pointer import value_at

ARM_TYPE = f"{PROVIDER}/workspaces/computes"

#: The last parts of `$schema` that are not the compute type.
_SCHEMAS: Mapping[str, tuple[str, ...]] = {
    "kubernetes": ("kubernetescompute",),
    "virtualmachine": ("vmcompute", "virtualmachinecompute"),
    "synapsespark": ("synapsesparkcompute", "attachedspark"),
}
#: Types that other tools' files have, too.
_COMMON_WORDS = ("kubernetes", "virtualmachine")
_SUBNET = "/network_settings/subnet"
_UNTOLD = "`az ml` prints no compute type for AKS, Databricks, HDInsight, Data Lake Analytics and Data Factory"


def _bring(word: str) -> Callable[[JsonObject, str, Surroundings], Iterator[Placed | Refusal]]:
    def bring(document: JsonObject, pointer: str, around: Surroundings) -> Iterator[Placed | Refusal]:
        stated = document.get("type")
        if not isinstance(stated, str) or lowered(stated) != word:
            message = f"`type` is {spelled(stated)}, where a compute of the Azure CLI has its type"
            known = ", ".join(f"`{known}`" for known in SHAPES)
            remedy = f"the CLI knows {known}{nearest(str(stated), SHAPES)}"
            yield Refusal(f"{pointer}/type" if "type" in document else pointer, message, remedy)
            return
        arm_id = identity(document, ARM_TYPE, around)
        resource: JsonObject = {"id": arm_id, "name": arm_id.rpartition("/")[2], "type": ARM_TYPE}
        given = placed(SHAPES[word], resource, document, pointer, _of_subnet(document))
        _by_id(given.resource, document, around)
        yield given._replace(
            resource=with_attachment(given.resource),
            unreadable={**given.unreadable, **unplaced(arm_id)},
            fields={**given.fields, "/properties/computeType": f"{pointer}/type"},
        )

    return bring


def _bring_unsupported(document: JsonObject, pointer: str, around: Surroundings) -> Iterator[Placed | Refusal]:
    arm_id = identity(document, ARM_TYPE, around)
    resource: JsonObject = {"id": arm_id, "name": arm_id.rpartition("/")[2], "type": ARM_TYPE}
    given = placed(UNSUPPORTED, resource, document, pointer, {})
    yield given._replace(unreadable={**given.unreadable, "/properties/computeType": _UNTOLD})


def _of_subnet(document: JsonObject) -> dict[str, str]:
    """Why it is not known which subnet a file names, by JSON Pointer; nothing where it is, or names none."""
    network = document.get("network_settings")
    subnet, vnet = (network.get("subnet"), network.get("vnet_name")) if isinstance(network, dict) else (None, None)
    if vnet and not subnet:
        return {_SUBNET: "`network_settings` has a `vnet_name` and no `subnet`"}
    if not isinstance(subnet, str) or "/" in subnet or stands_for_value(subnet):
        return {}
    if not isinstance(vnet, str) or not vnet:
        return {_SUBNET: f"the subnet `{subnet}` is named without its `vnet_name`; write both, or its whole id"}
    return {_SUBNET: stands_for("network_settings/vnet_name", vnet)} if stands_for_value(vnet) else {}


def _by_id(resource: JsonObject, document: JsonObject, around: Surroundings) -> None:
    """Put the id of a subnet where a name stands: it is one in the resource group of the workspace.

    Where nobody states the group, parts of the id are open, as policies understand it; that there is a subnet is known.
    Source: `get_subnet_str` in `_schema/_utils/utils.py` of azure-ai-ml 1.35.2.
    """
    subnet = value_at(resource, SUBNET_ID)
    if not isinstance(subnet, str) or "/" in subnet:
        return
    vnet = value_at(document, "/network_settings/vnet_name")
    group = around.workspace[: lowered(around.workspace).index("/providers/")]
    put(resource, SUBNET_ID, f"{group}/providers/Microsoft.Network/virtualNetworks/{vnet}/subnets/{subnet}")


def _takes(word: str) -> Callable[[JsonObject], bool]:
    def takes(document: JsonObject) -> bool:
        stated = document.get("type")
        if not isinstance(stated, str) or lowered(stated) != word:
            return False
        return word not in _COMMON_WORDS or "resource_id" in document or "id" in document

    return takes


def _is_unsupported(document: JsonObject) -> bool:
    """Whether an output names no type that the CLI knows, be it that it was cut off."""
    known = document.get("type")
    if lowered(ARM_TYPE) not in types_of(stated_id(document)):
        return False
    return not isinstance(known, str) or lowered(known) not in SHAPES


KINDS: tuple[Kind, ...] = (
    *(
        Kind(ARM_TYPE, (word, *_SCHEMAS.get(word, ())), _takes(word), _bring(word), shape=shape)
        for word, shape in SHAPES.items()
    ),
    Kind(ARM_TYPE, (), _is_unsupported, _bring_unsupported, shape=UNSUPPORTED),
)
