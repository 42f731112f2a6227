#!/bin/sh
# Let a deployment of main.bicep through only if what it changes breaks no policy. RESOURCE_GROUP is what it is deployed
# to; SNAPSHOT names the state before, in any format that `policyeng check` reads; arguments are those of
# `policyeng admit`.
set -eu
az deployment group what-if --resource-group "$RESOURCE_GROUP" --template-file main.bicep \
  --no-pretty-print --result-format FullResourcePayloads > what-if.json
policyeng admit what-if.json --snapshot "$SNAPSHOT" "$@"
