# METADATA
# description: What the catalogue has of a VM size and of a series, names compared without case.
package lib.sizes

import data.lib.times

# facts_of(size): the catalogue's row of a size; undefined when the catalogue does not know it.
facts_of(size) := data.facts.vm_sizes[lower(size)] if is_string(size)

series(size) := facts_of(size).series

is_isolated(size) if {
	is_string(size)
	data.facts.isolated_sizes[lower(size)]
}

# series_rows(series, parameters): the rows of a series: of the documents' table, of the vendor's list of today where the
# parameter `vendor_series` is true, and of the parameter `extra_series`.
series_rows(series, parameters) := array.concat(
	[row | some table in _tables(parameters); row := table[lower(series)]],
	[row | some name, row in parameters.extra_series; lower(name) == lower(series)],
)

_tables(parameters) := [_documented, _offered] if {
	parameters.vendor_series == true
} else := [_documented]

_documented[lower(name)] := row if some name, row in data.facts.vm_series

_offered[lower(name)] := row if some name, row in data.facts.offered_series

is_supported(series, parameters) if count(series_rows(series, parameters)) > 0

needs_approval(series, parameters) if {
	some row in series_rows(series, parameters)
	_needs_approval(row)
}

_needs_approval(row) if row.restriction == "approval"

_needs_approval(row) if row.restricted == true

# supported_by(series, parameters): the kinds of compute that offer a supported series. A row without the column means
# both, as every row of the documents does.
supported_by(series, parameters) := object.get(
	series_rows(series, parameters)[0],
	"supported_by",
	["cluster", "instance"],
)

# retirement(size, as_of): the row of a size that is retired at a moment in RFC 3339; undefined for any other size.
retirement(size, as_of) := row if {
	is_string(size)
	row := data.facts.retired_sizes[lower(size)]
	times.ordered(as_of) >= times.ordered(concat("", [row.date, "T00:00:00Z"]))
}

# successor(row): where to move from a retired size.
successor(row) := concat(" ", ["a size of the series", row.move_to]) if {
	row.move_to
} else := "a size that is still offered"
