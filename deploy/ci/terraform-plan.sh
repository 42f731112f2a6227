#!/bin/sh
# Check what a Terraform plan would create, before it is applied. Arguments are passed to `policyeng check`.
set -eu
terraform plan -input=false -out=tfplan
terraform show -json tfplan > plan.json
policyeng check plan.json "$@"
