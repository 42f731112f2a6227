# METADATA
# description: Names of Azure regions, as documents and people write them.
package lib.locations

# folded(location): the name of a region without case and white space, `eastus` for `East US`; undefined for what is blank
# or not text.
folded(location) := name if {
	is_string(location)
	name := lower(regex.replace(location, `\s`, ""))
	name != ""
}
