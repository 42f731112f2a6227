#!/bin/sh
# Check what main.bicep would deploy, with main.bicepparam if it exists. Arguments are passed to `policyeng check`, such
# as `--scope /subscriptions/<id>/resourceGroups/<name>`.
set -eu
az bicep build --file main.bicep --outfile main.json
if [ -f main.bicepparam ]; then
  az bicep build-params --file main.bicepparam --outfile main.parameters.json
  set -- --parameters main.parameters.json "$@"
fi
policyeng check main.json "$@"
