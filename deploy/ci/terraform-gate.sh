#!/bin/sh
# Accept a Terraform plan only if its changes break no policy. SNAPSHOT is the path of the state before, in any format
# that `policyeng check` reads. Arguments are passed to `policyeng admit`.
set -eu
terraform plan -input=false -out=tfplan
terraform show -json tfplan > plan.json
policyeng admit plan.json --snapshot "$SNAPSHOT" "$@"
