#!/bin/sh
# Accept a deployment of main.bicep only if its changes break no policy. RESOURCE_GROUP is the target of the deployment.
# SNAPSHOT is the path of the state before, in any format that `policyeng check` reads. Arguments are passed to
# `policyeng admit`.
set -eu
az deployment group what-if --resource-group "$RESOURCE_GROUP" --template-file main.bicep \
  --no-pretty-print --result-format FullResourcePayloads > what-if.json
policyeng admit what-if.json --snapshot "$SNAPSHOT" "$@"
