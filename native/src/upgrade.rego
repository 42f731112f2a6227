# What the builtins of Rego v0 say that v1 dropped; modules in v0 that call them call these.
package policyeng_v0

any(values) if true in values

else := false

all(values) if {
	every value in values {
		value == true
	}
}

else := false

set_diff(left, right) := left - right
