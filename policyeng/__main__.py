"""The command line as `python -m policyeng`."""

from policyeng.cli import main

main()
