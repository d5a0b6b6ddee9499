"""What both programs of the bundle run: the window or a command, or with --worker the engine."""

import multiprocessing
import sys

from qwendesk.__main__ import main

if __name__ == "__main__":
    multiprocessing.freeze_support()
    sys.exit(main())
