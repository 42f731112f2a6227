#!/bin/sh
# Judge what a Terraform plan would make, before it is applied. Arguments are those of `policyeng check`.
set -eu
terraform plan -input=false -out=tfplan
terraform show -json tfplan > plan.json
policyeng check plan.json "$@"
