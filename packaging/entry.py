"""What the program QwenDesk runs: the window, or a command."""

import multiprocessing
import sys

from qwendesk.__main__ import main

if __name__ == "__main__":
    multiprocessing.freeze_support()
    sys.exit(main())
