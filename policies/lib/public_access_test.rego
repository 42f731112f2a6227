package lib.public_access_test

import data.lib.public_access

resource(value) := {"properties": {"publicNetworkAccess": value}}

test_closed if {
	public_access.is_closed(resource("disabled"))
	public_access.is_closed(resource("SecuredByPerimeter"))
	every value in [null, "", "Enabled", "open", 7] {
		not public_access.is_closed(resource(value))
	}
}

test_unreadable if {
	public_access.unreadable(resource("open")) == "/properties/publicNetworkAccess"
	public_access.unreadable({"properties": []}) == "/properties"
	every value in [null, "", "Enabled", "Disabled"] {
		not public_access.unreadable(resource(value))
	}
}
