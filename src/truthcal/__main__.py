"""`python -m truthcal` is the command line."""

from truthcal.cli.main import run

run()
