#!/bin/bash
# Check the computes that a workspace has now. RESOURCE_GROUP and WORKSPACE are its names. Arguments are passed to
# `policyeng check`.
set -euo pipefail
id=$(az ml workspace show --resource-group "$RESOURCE_GROUP" --name "$WORKSPACE" --query id --output tsv)
az ml compute list --resource-group "$RESOURCE_GROUP" --workspace-name "$WORKSPACE" --output json |
  policyeng check - --workspace "$id" "$@"
