"""The documents of the Azure CLI's extension `ml`: what `az ml ... --file` takes, and what `az ml ... show` prints."""
