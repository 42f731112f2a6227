package lib.addresses_test

import data.lib.addresses

test_prefix if {
	addresses.prefix("10.0.0.0/8") == {"family": 4, "length": 8}
	addresses.prefix(" 10.1.2.3/16 ") == {"family": 4, "length": 16}
	addresses.prefix("10.1.2.3") == {"family": 4, "length": 32}
	addresses.prefix("::/0") == {"family": 6, "length": 0}
	addresses.prefix("2001:DB8::/48") == {"family": 6, "length": 48}
	addresses.prefix("2001:db8::1") == {"family": 6, "length": 128}
}

test_no_prefix if {
	every text in ["10.0.0.0/33", "10.0.0/8", "2001:db8::/129", "contoso.example", "10.0.0.1-10.0.0.9", "/", "", null, 10, ["10.0.0.0/8"]] {
		not addresses.prefix(text)
	}
}
