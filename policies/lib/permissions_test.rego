package lib.permissions_test

import data.lib.permissions

computes := "Microsoft.MachineLearningServices/workspaces/computes"

start := concat("/", [computes, "start/action"])

test_star_is_any_run_of_characters if {
	every pattern in ["*", "*/action", "Microsoft.MachineLearningServices/*", "microsoft.*/ACTION", concat("", [start, "*"])] {
		permissions.covers(pattern, start)
	}
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
	not permissions.grants([taken], start)
	permissions.grants([taken, {"actions": ["*/action"]}], start)
	permissions.grants([taken], concat("/", [computes, "write"]))
	not permissions.grants([{"actions": ["*/read"]}, {"notActions": ["*/read"]}, {}], start)
}

test_blocks_that_cannot_be_read_grant_nothing if {
	every block in [{"actions": "*"}, {"actions": ["*", 1]}, {"actions": ["*"], "notActions": {}}, "*", null] {
		not permissions.is_sound(block)
		not permissions.grants([block], start)
	}
	every blocks in [{"a": {"actions": ["*"]}}, "*", null, []] {
		not permissions.grants(blocks, start)
	}
	permissions.is_sound({"actions": null})
}
