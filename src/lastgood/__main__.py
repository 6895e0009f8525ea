"""`python -m lastgood` is the command `lastgood`."""

import sys

from lastgood.cli import main

if __name__ == "__main__":
    sys.exit(main())
