package lib.locations_test

import data.lib.locations

test_folded if {
	every location in ["eastus", "East US", " EASTUS\t"] {
		locations.folded(location) == "eastus"
	}
	every location in ["", " ", null, 1, ["eastus"], {"name": "eastus"}] {
		not locations.folded(location)
	}
}
