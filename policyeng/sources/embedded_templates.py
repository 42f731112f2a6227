"""Resources in the templates that other resources carry, such as a deployment in a Terraform plan or a REST body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from policyeng.errors import InputError
from policyeng.sources.reading import Loaded, Placed, Reading
from policyeng.sources.template_carriers import Carrier, carrier_of, member, template_in

#: Formats of what exists: a deployment in them is over, and its resources are listed by themselves.
_LIVE = ("arm-rest", "native", "resource-graph")


def with_contents(document: Loaded, format_name: str) -> Loaded:
    """Add the resources in the templates that the document's resources carry, with their places in the document.

    Args:
        document: as its format reads it.
        format_name: of that format. A carrier that only records what has been deployed adds nothing; without a
            template any other is refused.
    """
    reading = document.reading
    carriers = [
        placed
        for placed in reading.resources
        if (carrier := carrier_of(placed.resource["type"], placed.resource)) is not None
        and not _is_record(placed, carrier, reading, format_name)
    ]
    if not carriers:
        return document
    from policyeng.sources.arm_template import Contents  # most documents carry no template

    contents = Contents(document.file)
    inner = [_at_places(contents.read(placed.resource, placed.unreadable), placed) for placed in carriers]
    more = replace(
        reading,
        resources=(*reading.resources, *(placed for each in inner for placed in each.resources)),
        refusals=(*reading.refusals, *(refusal for each in inner for refusal in each.refusals)),
        incomplete=(*reading.incomplete, *(line for each in inner for line in each.incomplete)),
        remarks=(*reading.remarks, *(remark for each in inner for remark in each.remarks)),
    )
    return document._replace(reading=more)


def _is_record(placed: Placed, carrier: Carrier, reading: Reading, format_name: str) -> bool:
    """Whether a carrier has no template and only records what has been deployed, or stored, before."""
    properties = member(placed.resource, "properties")
    try:
        has_template = template_in(carrier, properties) is not None
    except InputError:
        return False
    if has_template or any(at.startswith("/properties/") for at in placed.unreadable):
        return False
    if format_name == "terraform":
        return not reading.states_changes or placed.pointer in reading.unchanged
    if format_name not in _LIVE:
        return False
    has_run = isinstance(member(properties, "provisioningState"), str)
    return not isinstance(properties, Mapping) or carrier.is_stored or has_run


def _at_places(reading: Reading, carrier: Placed) -> Reading:
    """The reading of a carrier's template, with pointers into the document and not into the carrier."""
    return replace(
        reading,
        resources=tuple(
            placed._replace(
                pointer=_place(carrier, placed.pointer),
                fields={at: _place(carrier, there) for at, there in placed.fields.items()},
            )
            for placed in reading.resources
        ),
        refusals=tuple(refusal._replace(pointer=_place(carrier, refusal.pointer)) for refusal in reading.refusals),
        remarks=tuple((_place(carrier, pointer), message) for pointer, message in reading.remarks),
    )


def _place(carrier: Placed, pointer: str) -> str:
    """Where a part of a carrier is in the document: as `fields` has it, or what is nearest above it."""
    above = pointer
    while above and above not in carrier.fields:
        above = above.rpartition("/")[0]
    return carrier.fields.get(above, carrier.pointer) + pointer[len(above) :]
