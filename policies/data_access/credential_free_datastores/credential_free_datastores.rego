# METADATA
# scope: package
# title: Datastores keep no credential
# description: >-
#   Whoever may use a datastore with a stored key, signature or secret uses it as the same account, and no log shows who
#   it was. Without a credential, data is read with the identity of the person or of the compute.
# related_resources: [https://learn.microsoft.com/azure/machine-learning/how-to-datastore]
# custom:
#   id: AML-DAT-001
#   severity: high
#   judges: [Microsoft.MachineLearningServices/workspaces/datastores]
#   remediation: >-
#     Create the datastore again without `credentials`, and grant the identity that reads the data one of the roles
#     Storage Blob Data Reader and Storage Blob Data Contributor.
#   source: DAT-01
#   since: 0.2.0
package data_access.credential_free_datastores

import data.lib.settings

deny contains {
	"msg": "the datastore has a credential",
	"path": settings.pointer(place),
	"actual": settings.at(input.resource, place),
	"expected": "None",
} if {
	settings.word(settings.at(input.resource, place), credentials)
}

unknown contains {"msg": "whether the datastore has a credential is not stated", "path": settings.pointer(place)} if {
	settings.is_unset(input.resource, place)
}

unknown contains {"msg": "the type of the credential cannot be read", "path": pointer} if {
	pointer := settings.unreadable_word(input.resource, place, credentials | {"none"})
}

credentials := {"accountkey", "certificate", "kerberoskeytab", "kerberospassword", "sas", "serviceprincipal"}

place := ["properties", "credentials", "credentialsType"]
