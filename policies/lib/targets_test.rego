package lib.targets_test

import data.lib.targets

none := {name: false | some name in ["automl", "pipeline", "designer", "sweep", "distributed"]}

run(target, features) := {
	"step": null,
	"target": target,
	"reason": "why",
	"computeId": null,
	"features": object.union(none, features),
	"concurrentTrials": null,
}

# The parameters of the documents' reading with further targets.
with_extra(extra) := {"extra_targets": extra, "vendor_targets": false}

today := {"extra_targets": {}, "vendor_targets": true}

work(purpose, target, features) := {"purpose": purpose, "runs": [run("compute-cluster", {}), run(target, features)]}

test_what_has_a_feature if {
	every purpose in ["training", null] {
		targets.has_feature(work(purpose, "local", {"automl": true}), "automl")
		targets.has_feature(work(purpose, null, {"automl": null}), "automl")
		not targets.has_feature(work(purpose, "local", {"automl": true}), "designer")
	}
	every purpose in ["experimentation", "batch-inference"] {
		not targets.has_feature(work(purpose, "local", {"pipeline": true}), "pipeline")
	}
}

test_the_documents_go_first if {
	targets.support("pipeline", "local", with_extra({"local": true})) == "no"
	targets.support("automl", "local", with_extra({"local": false})) == "yes"
	targets.support("automl", "databricks", with_extra({})) == "sdk-local-mode"
	targets.support("automl", "databricks", with_extra({"Databricks ": true})) == "yes"
	targets.support("automl", "databricks", with_extra({"databricks": false})) == "no"
	targets.support("automl", "serverless", with_extra({"server": true})) == "unlisted"
	targets.support("automl", "serverless", with_extra({"serverless": true})) == "yes"
	targets.support("automl", "kubernetes", with_extra({"kubernetes": false})) == "no"
	not targets.support("automl", null, with_extra({}))
}

test_the_list_of_today_goes_before_the_documents if {
	targets.support("designer", "compute-instance", with_extra({})) == "no"
	targets.support("designer", "compute-instance", today) == "yes"
	targets.support("automl", "kubernetes", {"extra_targets": {"kubernetes": true}, "vendor_targets": true}) == "no"
	targets.support("automl", "synapse-spark", today) == "sdk-local-mode"
	targets.support("automl", "local", today) == "yes"
	targets.support("automl", "aks", today) == "unlisted"
	not targets.support("automl", null, today)
}

test_unsupported_runs if {
	targets.unsupported(work("training", "local", {"pipeline": true}), "pipeline", with_extra({})) == {{"target": "local"}}
	every doubtful in [
		work(null, "local", {"pipeline": true}),
		work("training", "local", {"pipeline": null}),
		work("training", null, {"pipeline": true}),
		work("training", "databricks", {"pipeline": true}),
	] {
		targets.unsupported(doubtful, "pipeline", with_extra({})) == set()
	}
}

test_doubts if {
	targets.doubts(work("training", null, {"pipeline": true}), "pipeline", with_extra({})) == {"why"}
	every doubtful in [
		work("training", "databricks", {"automl": true}),
		work("training", "serverless", {"automl": true}),
		work("training", "hdinsight", {"automl": null}),
		work(null, "hdinsight", {"automl": true}),
	] {
		count(targets.doubts(doubtful, "automl", with_extra({}))) == 1
	}
	every decided in [
		work("training", "hdinsight", {"automl": true}),
		work(null, "local", {"automl": true}),
		work("training", "local", {"automl": null}),
		work("training", null, {}),
	] {
		targets.doubts(decided, "automl", with_extra({})) == set()
	}
}

test_shown if {
	targets.shown(run("local", {})) == {"target": "local"}
	step := object.union(run("local", {}), {"step": "train", "concurrentTrials": 4})
	targets.shown(step) == {"step": "train", "target": "local", "concurrentTrials": 4}
}

test_nodes if {
	cluster := {
		"type": "Microsoft.MachineLearningServices/workspaces/computes",
		"properties": {"computeType": "AmlCompute", "properties": {"scaleSettings": {"maxNodeCount": "4"}}},
	}
	instance := object.union(cluster, {"properties": {"computeType": "ComputeInstance"}})
	targets.nodes({"computeId": "/A"}, {"/a": cluster}) == 4
	not targets.nodes({"computeId": "/A"}, {"/a": instance})
	not targets.nodes({"computeId": "/B"}, {"/a": cluster})
	not targets.nodes({"computeId": null}, {"/a": cluster})
}
