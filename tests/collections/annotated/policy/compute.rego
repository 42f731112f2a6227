# METADATA
# title: The compute rules of the platform
# custom:
#   id: KSV001
#   severity: LOW
package azure.compute

# METADATA
# title: Clusters scale down to nothing
# description: Idle nodes cost money.
# related_resources:
# - https://learn.microsoft.com/azure/machine-learning/how-to-optimize-cost
# custom:
#   severity: Critical
deny_idle contains res if {
	input.properties.computeType == "AmlCompute"
	least := input.properties.properties.scaleSettings.minNodeCount
	least > 0
	res := {"msg": sprintf("%s keeps %d nodes", [input.name, least]), "path": "/properties/properties/scaleSettings/minNodeCount", "actual": least, "expected": 0}
}

deny_ssh contains "ssh is open to the internet" if {
	input.properties.properties.remoteLoginPortPublicAccess == "Enabled"
}
