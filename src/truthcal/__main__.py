"""`python -m truthcal` is the command line."""

import sys

from truthcal.cli.main import main

sys.exit(main())
