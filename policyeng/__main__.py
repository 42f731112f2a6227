"""`python -m policyeng` is the command line."""

from policyeng.cli import main

main()
