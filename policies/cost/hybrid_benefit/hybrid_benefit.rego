# METADATA
# scope: package
# title: Eligible Windows machines use the hybrid benefit
# description: >-
#   "Allows users with Software Assurance to use their on-premises Windows Server or SQL Server licenses on Azure at a
#   reduced cost." An attached virtual machine uses it when `licenseType` of the machine that `properties.resourceId`
#   names is Windows_Server or Windows_Client. A machine with another system passes; who has no licences to bring exempts theirs.
# related_resources: [https://learn.microsoft.com/azure/virtual-machines/windows/hybrid-use-benefit-licensing]
# custom:
#   id: AML-COST-108
#   severity: info
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#       where:
#         /properties/computeType: [VirtualMachine]
#   remediation:
#     text: >-
#       Where there are licences with Software Assurance, set the licence of the machine that the compute names: `az vm
#       update --ids <resourceId> --license-type Windows_Server` (Windows_Client for a desktop edition).
#   source: 002 "Pricing Models and Cost Optimization Strategies"
#   since: 0.1.0
package cost.hybrid_benefit

import data.lib.computes
import data.lib.words

deny contains {
	"msg": "a Windows machine does not use the hybrid benefit",
	"path": "/properties/resourceId",
	"actual": {"osType": "Windows", "licenseType": license},
	"expected": "licenseType Windows_Server or Windows_Client",
} if {
	operating_system == "windows"
	uses_benefit == false
}

# Null for a licence that is not one of Windows.
uses_benefit if {
	words.folded(license) in {"windows_server", "windows_client"}
} else := false if {
	license == null
} else := false if {
	is_string(license)
	lower(trim_space(license)) in {"", "none"}
} else := null

unknown contains {"msg": "the virtual machine is not in the snapshot", "path": "/properties/resourceId"} if {
	not machine
}

unknown contains {"msg": "the operating system of the machine is not stated", "path": "/properties/resourceId"} if {
	machine
	not is_known_system
}

unknown contains {"msg": "the licence of the machine is none of Windows", "path": "/properties/resourceId"} if {
	operating_system == "windows"
	uses_benefit == null
}

machine := computes.machine_of(input.resource, input.snapshot.by_id)

operating_system := words.folded(machine.properties.storageProfile.osDisk.osType)

is_known_system if operating_system in {"linux", "windows"}

license := object.get(machine, ["properties", "licenseType"], null)
