"""`python -m headrace.cli`: the command line where its script is not on the path."""

import sys

from headrace.cli.app import main

sys.exit(main())
