# METADATA
# description: >-
#   Diagnostic settings of exactly a resource, and what is on in them. What is asked of them is answered as in `lib.answers`.
package lib.diagnostics

import data.lib.answers
import data.lib.ids
import data.lib.numbers
import data.lib.settings
import data.lib.words

# of(resource, snapshot): its diagnostic settings in the snapshot.
of(resource, snapshot) := [snapshot.by_id[id] |
	some id in snapshot.by_extended[ids.folded(resource.id)]["microsoft.insights/diagnosticsettings"]
]

# names(found): what denials report of settings.
names(found) := [setting.id | some setting in found]

# doubts(is_met, incomplete): why it is not known whether a setting meets a demand, by the answer of those in the snapshot
# and by what could not be read.
doubts("unclear", _) := {"a diagnostic setting cannot be read"}

doubts("no", incomplete) := {"the snapshot is incomplete: a diagnostic setting may exist"} if count(incomplete) > 0

# has_log(setting), has_metric(setting): whether one is on.
has_log(setting) := answers.any_of({is_on(entry) | some entry in logs(setting)})

has_metric(setting) := answers.any_of({is_on(entry) | some entry in _entries(setting, "metrics")})

# logs(setting): its entries about logs. Where they are no list, one that is not an object replaces them.
logs(setting) := _entries(setting, "logs")

_entries(setting, key) := [null] if {
	settings.unreadable(setting, ["properties", key], "array")
} else := setting.properties[key] if {
	is_array(setting.properties[key])
} else := []

# is_on(entry): whether a log or metric is enabled.
is_on(entry) := "unclear" if {
	not is_object(entry)
} else := "yes" if {
	settings.flag(entry.enabled) == true
} else := "unclear" if {
	settings.is_unreadable_flag(object.get(entry, "enabled", null))
} else := "no"

# has_group(setting, groups), has_category(setting, category): whether a log of one of the groups, which are in lower
# case, or of the category is on.
has_group(setting, groups) := answers.any_of({answer |
	some entry in logs(setting)
	answer := answers.all_of({is_on(entry), _has_word(entry, "categoryGroup", groups)})
})

has_category(setting, category) := answers.any_of({is_of(entry, category) | some entry in logs(setting)})

# is_of(entry, category): whether a log is on and is of a category, by name or by the group of all.
is_of(entry, category) := answers.all_of({
	is_on(entry),
	answers.any_of({_has_word(entry, "category", {words.folded(category)}), _has_word(entry, "categoryGroup", {"alllogs"})}),
})

_has_word(entry, key, wanted) := "yes" if {
	words.folded(entry[key]) in wanted
} else := "unclear" if {
	not is_object(entry)
} else := "no" if {
	words.is_blank(object.get(entry, key, null))
} else := "unclear" if {
	not is_string(entry[key])
} else := "no"

# has_logs(setting, groups, categories): whether a log of one of the groups, or one of each category, is on.
has_logs(setting, groups, categories) := answers.any_of({
	has_group(setting, groups),
	answers.all_of({"no" | count(categories) == 0} | {has_category(setting, category) | some category in categories}),
})

# goes_to(setting, sinks): whether it goes to all of the sinks, by the property that names each; blank ones count as met.
goes_to(setting, sinks) := answers.all_of({_goes_to(setting, key, wanted) |
	some key, wanted in sinks
	not words.is_blank(wanted)
})

_goes_to(setting, key, wanted) := "yes" if {
	ids.folded(words.folded(setting.properties[key])) == ids.folded(words.folded(wanted))
} else := _states(setting, key)

_states(setting, key) := "unclear" if {
	settings.unreadable(setting, ["properties", key], "string")
} else := "no"

# is_kept(setting, entry, days): whether nothing deletes a log from a storage account before so many days have passed:
# it does not go to one, or its retention is off, forever (0), or long enough.
is_kept(setting, entry, days) := answers.any_of({_retention(entry, days), _is_not_stored(setting)})

_is_not_stored(setting) := "yes" if {
	settings.at(setting, ["properties", "storageAccountId"]) == null
	not settings.unreadable(setting, ["properties", "storageAccountId"], "string")
} else := _states(setting, "storageAccountId")

_retention(entry, days) := "unclear" if {
	not is_object(entry)
} else := "unclear" if {
	settings.unreadable_flag(entry, ["retentionPolicy", "enabled"])
} else := "yes" if {
	not settings.flag(object.get(entry, ["retentionPolicy", "enabled"], null))
} else := "yes" if {
	_is_enough(numbers.whole(entry.retentionPolicy.days), days)
} else := "no" if {
	numbers.whole(entry.retentionPolicy.days)
} else := "unclear"

_is_enough(0, _) := true

_is_enough(stated, days) if stated >= days

# has_sink(setting, entry, days): whether a log goes somewhere that keeps it: to Log Analytics, to an event hub, or to a
# storage account for so many days.
has_sink(setting, entry, days) := answers.any_of({
	_names(setting, "workspaceId"),
	_names(setting, "eventHubAuthorizationRuleId"),
	answers.all_of({_names(setting, "storageAccountId"), _retention(entry, days)}),
})

_names(setting, key) := "yes" if {
	words.text(setting.properties[key])
} else := _states(setting, key)
