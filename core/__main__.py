"""`python -m lastgood.core inspect PATH` and `verify PATH`."""

import sys

from .command import main

if __name__ == "__main__":
    sys.exit(main(program=f"python -m {__package__}"))
