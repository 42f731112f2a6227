package lib.jobs_test

import data.lib.jobs

ml := "/subscriptions/s/resourceGroups/rg/providers/Microsoft.MachineLearningServices/workspaces"

compute_type := "Microsoft.MachineLearningServices/workspaces/computes"

job(properties) := {"id": concat("/", [ml, "ws/jobs/j"]), "properties": properties}

reference(name) := {"path": "/x", "written": name, "name": name}

by_id(name, type) := {lower(id): {"id": id, "type": type}} if id := concat("/", [ml, name])

test_references_of_a_job if {
	jobs.references(job({"computeId": " AzureML:Cpu "})) == [{
		"path": "/properties/computeId", "written": " AzureML:Cpu ", "name": "cpu",
	}]
	jobs.references(job({"computeId": 7}))[0].name == ""
	every blank in [null, "", " "] {
		jobs.references(job({"computeId": blank})) == []
	}
	every odd in [null, "text", ["text"]] {
		jobs.references({"id": "/x", "properties": odd}) == []
	}
}

test_references_of_an_earlier_version if {
	jobs.references(job({"compute": {"target": "a", "instanceCount": 2}})) == [{
		"path": "/properties/compute/target", "written": "a", "name": "a",
	}]
}

test_references_of_a_pipeline if {
	found := jobs.references(job({
		"settings": {"default_compute": "a"},
		"jobs": {"x~/y": {"compute_id": "b"}, "text": "c", "none": {"computeId": null}},
	}))
	{one.path: one.name | some one in found} == {
		"/properties/settings/default_compute": "a",
		"/properties/jobs/x~0~1y/compute_id": "b",
	}
	jobs.references(job({"jobs": [{"computeId": "a"}], "settings": "b"})) == []
}

test_expressions if {
	jobs.is_expression(reference("${{parent.inputs.x}}"))
	not jobs.is_expression(reference("x"))
	not jobs.is_expression(reference(""))
}

test_found_in_the_workspace if {
	known := by_id("ws/computes/Cpu", upper(compute_type))
	jobs.is_found(reference("cpu"), job({}), known)
	jobs.is_found(reference(lower(concat("/", [ml, "WS/computes/cpu/"]))), job({}), known)
	not jobs.is_found(reference("cpu2"), job({}), known)
	not jobs.is_found(reference(""), job({}), known)
	not jobs.is_found(reference("cpu"), job({}), by_id("ws/computes/cpu", "Microsoft.Other/things"))
	not jobs.is_found(reference(lower(concat("/", [ml, "ws2/computes/cpu"]))), job({}), by_id("ws2/computes/cpu", compute_type))
}

test_no_compute_is_needed if {
	every name in ["serverless", "local", "local/", "/a/computes/serverless"] {
		jobs.is_found(reference(name), job({}), {})
	}
	every name in ["my-local", "locals", "/local/computes/x"] {
		not jobs.is_found(reference(name), job({}), {})
	}
}
