package lib.subnets_test

import data.lib.subnets

by_id := {
	"/n": {"properties": {"subnets": [7, {"id": "/N/subnets/A", "name": "x"}, {"name": "B"}]}},
	"/n/subnets/own": {"name": "own"},
	"/m": {"properties": {"subnets": "text"}},
}

test_named if {
	subnets.named("/N/subnets/Own", by_id) == {"name": "own"}
	subnets.named("/n/subnets/a/", by_id).name == "x"
	subnets.named("/n/subnets/b", by_id).name == "B"
	every id in ["/n/subnets/c", "/m/subnets/a", "/o/subnets/a", "text"] {
		not subnets.named(id, by_id)
	}
}
