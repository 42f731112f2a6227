# METADATA
# description: The computes that a job and the steps of its pipeline name, and where these names lead.
package lib.jobs

import data.lib.computes
import data.lib.ids
import data.lib.words

# references(job): [{"path", "written", "name"}] for each compute that is named; `name` is in lower case, empty for
# what is not text. A null or blank reference is none. `compute.target` is of API version 2021-03-01-preview.
references(job) := array.concat(
	[reference |
		some [place, key] in [[[], "computeid"], [["settings"], "defaultcompute"], [["compute"], "target"]]
		path := array.concat(["properties"], place)
		some reference in _references(object.get(job, path, null), key, concat("/", array.concat([""], path)))
	],
	[reference |
		is_object(job.properties.jobs)
		some key, step in job.properties.jobs
		path := concat("/", ["/properties/jobs", replace(replace(key, "~", "~0"), "/", "~1")])
		some reference in _references(step, "computeid", path)
	],
)

# The keys of pipelines come in several spellings.
_references(holder, wanted, path) := [{"path": concat("/", [path, key]), "written": written, "name": _name(written)} |
	is_object(holder)
	some key, written in holder
	replace(lower(key), "_", "") == wanted
	not words.is_blank(written)
]

_name(written) := trim_prefix(words.folded(written), "azureml:") if is_string(written)

else := ""

is_expression(reference) if contains(reference.name, "${{")

# is_found(reference, job, by_id): whether it names a compute of the job's workspace, or needs none: serverless compute
# and the machine of the submitter.
is_found(reference, job, by_id) if {
	home := ids.workspace_id(job.id)
	compute := ids.named(_id(reference.name, home), by_id)
	lower(compute.type) == computes.compute_type
	ids.workspace_id(compute.id) == home
}

is_found(reference, _, _) if regex.match(`(^|/)(serverless|local)/?$`, reference.name)

_id(name, home) := concat("/", [home, "computes", name]) if not contains(name, "/")

else := name
