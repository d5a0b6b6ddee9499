"""Entry of `make windows` and `make windows-test`."""

import sys

from tools.windows.command import main

sys.exit(main(sys.argv[1:]))
