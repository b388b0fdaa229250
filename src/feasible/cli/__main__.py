"""`python -m feasible.cli`: the command line without its script."""

from feasible.cli import main

main()
