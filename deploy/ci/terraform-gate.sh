#!/bin/sh
# Let a Terraform plan through only if what it changes breaks no policy. SNAPSHOT names the state before, in any format
# that `policyeng check` reads; arguments are those of `policyeng admit`.
set -eu
terraform plan -input=false -out=tfplan
terraform show -json tfplan > plan.json
policyeng admit plan.json --snapshot "$SNAPSHOT" "$@"
