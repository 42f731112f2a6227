# METADATA
# description: What the catalogue says of a VM size and of a series, names compared without case.
package lib.sizes

# facts_of(size): the catalogue's row of a size; undefined when the catalogue does not know it.
facts_of(size) := data.facts.vm_sizes[lower(size)] if is_string(size)

series(size) := facts_of(size).series

is_isolated(size) if {
	is_string(size)
	data.facts.isolated_sizes[lower(size)]
}

# series_rows(series, extra): what is stated of a series, the documents' table first, then the parameter `extra_series`.
series_rows(series, extra) := array.concat(_documented(series), _rows(extra, series))

# The catalogue spells the series of a size as the table does, so that few names need a walk through it.
_documented(series) := [row] if {
	row = data.facts.vm_series[series]
} else := _rows(data.facts.vm_series, series)

_rows(table, series) := [row |
	name := lower(series)
	some key, row in table
	lower(key) == name
]

is_supported(series, extra) if count(series_rows(series, extra)) > 0

needs_approval(series, extra) if {
	some row in series_rows(series, extra)
	_needs_approval(row)
}

_needs_approval(row) if row.restriction == "approval"

_needs_approval(row) if row.restricted == true

# supported_by(series, extra): the kinds of compute that offer a supported series. A row that does not say means both,
# as every row of the documents does.
supported_by(series, extra) := object.get(series_rows(series, extra)[0], "supported_by", ["cluster", "instance"])
