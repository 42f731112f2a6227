package lib.permissions_test

import data.lib.permissions

computes := "Microsoft.MachineLearningServices/workspaces/computes"

start := concat("/", [computes, "start/action"])

# Whether some blocks grant an action.
granted(blocks, action) := permissions.granted(blocks, [action])[0].granted

test_star_is_any_run_of_characters if {
	every pattern in ["*", "*/action", "Microsoft.MachineLearningServices/*", "microsoft.*/ACTION", concat("", [start, "*"])] {
		permissions.covers(lower(pattern), lower(start))
		granted([{"actions": [pattern]}], start) == true
	}
	granted([{"actions": [upper(start)]}], start) == true
}

test_star_between_slashes_is_also_a_single_slash if {
	every pattern in ["workspaces/computes/*/write", "workspaces/*/write", "workspaces/*/*/write", "*/*/write"] {
		permissions.covers(pattern, "workspaces/computes/write")
	}
	not permissions.covers("workspaces/computes/*/write", "workspaces/computeswrite")
	not permissions.covers("workspaces/computes*/write", "workspaces/computes")
	not permissions.covers("workspaces/computes*/write", "workspaces/computeswrite")
}

test_everything_else_is_literal if {
	not permissions.covers("Microsoft.Compute/read", "MicrosoftXCompute/read")
	not permissions.covers("a.*", "ab")
	permissions.covers("a.*", "a.b")
	permissions.covers(`\^$.|?+()[]{}*`, `\^$.|?+()[]{}x`)
	not permissions.covers("read", "readx")
	not permissions.covers("", "read")
}

test_not_actions_take_back_within_their_own_block if {
	taken := {"actions": ["*"], "notActions": [start]}
	granted([taken], start) == false
	granted([taken, {"actions": ["*/action"]}], start) == true
	granted([taken], concat("/", [computes, "write"])) == true
	granted([{"actions": ["*/read"]}, {"notActions": ["*/read"]}, {}], start) == false
	granted([], start) == false
}

test_blocks_that_cannot_be_read_leave_it_open if {
	every block in [{"actions": "*"}, {"actions": ["*", 1]}, {"actions": ["*"], "notActions": {}}, "*", null] {
		not permissions.is_sound(block)
		granted([block], start) == null
		granted([block, {"actions": [start]}], start) == true
	}
	every blocks in [{"a": {"actions": ["*"]}}, "*", null] {
		granted(blocks, start) == null
	}
	permissions.is_sound({"actions": null})
}

test_condition_of_a_block_decides_what_the_block_grants if {
	conditional := {"actions": ["*/action"], "condition": "@Resource[x] StringEquals 'y'"}
	granted([conditional], start) == null
	granted([conditional], computes) == false
	granted([conditional, {"actions": [start]}], start) == true
	granted([object.union(conditional, {"notActions": [start]})], start) == false
}

test_conditional if {
	every condition in ["@Resource[x] StringEquals 'y'", 7, false, {}] {
		permissions.is_conditional({"condition": condition})
	}
	every document in [{}, null, "condition", {"condition": null}, {"condition": ""}, {"condition": " \n"}] {
		not permissions.is_conditional(document)
	}
}
