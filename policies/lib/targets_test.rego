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
	targets.support("pipeline", "local", {"local": true}) == "no"
	targets.support("automl", "local", {"local": false}) == "yes"
	targets.support("automl", "databricks", {}) == "sdk-local-mode"
	targets.support("automl", "databricks", {"Databricks ": true}) == "yes"
	targets.support("automl", "databricks", {"databricks": false}) == "no"
	targets.support("automl", "serverless", {"server": true}) == "unlisted"
	targets.support("automl", "serverless", {"serverless": true}) == "yes"
	targets.support("automl", "kubernetes", {"kubernetes": false}) == "no"
	not targets.support("automl", null, {})
}

test_unsupported_runs if {
	targets.unsupported(work("training", "local", {"pipeline": true}), "pipeline", {}) == {{"target": "local"}}
	every doubtful in [
		work(null, "local", {"pipeline": true}),
		work("training", "local", {"pipeline": null}),
		work("training", null, {"pipeline": true}),
		work("training", "databricks", {"pipeline": true}),
	] {
		targets.unsupported(doubtful, "pipeline", {}) == set()
	}
}

test_doubts if {
	targets.doubts(work("training", null, {"pipeline": true}), "pipeline", {}) == {"why"}
	every doubtful in [
		work("training", "databricks", {"automl": true}),
		work("training", "serverless", {"automl": true}),
		work("training", "hdinsight", {"automl": null}),
		work(null, "hdinsight", {"automl": true}),
	] {
		count(targets.doubts(doubtful, "automl", {})) == 1
	}
	every decided in [
		work("training", "hdinsight", {"automl": true}),
		work(null, "local", {"automl": true}),
		work("training", "local", {"automl": null}),
		work("training", null, {}),
	] {
		targets.doubts(decided, "automl", {}) == set()
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
