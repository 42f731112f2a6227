# METADATA
# description: How the connections of workspaces authenticate.
package lib.connections

place := ["properties", "authType"]

# The kinds of authentication with a stored key or secret, and the others, in lower case.
keyed := {
	"pat",
	"usernamepassword",
	"sas",
	"delegatedsas",
	"accountkey",
	"accesskey",
	"apikey",
	"customkeys",
	"serviceprincipal",
}

keyless := {
	"aad",
	"accountmanagedidentity",
	"agentuserimpersonation",
	"agenticidentitytoken",
	"agenticuser",
	"managedidentity",
	"none",
	"oauth2",
	"projectmanagedidentity",
	"userentratoken",
}
