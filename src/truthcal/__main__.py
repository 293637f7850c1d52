"""`python -m truthcal` is the command line."""

import sys

from truthcal.cli import main

sys.exit(main())
