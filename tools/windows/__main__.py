"""Entry of `make windows`, `make windows-test`, `make windows-bundle` and `make windows-bundle-test`."""

import sys

from tools.windows.command import main

sys.exit(main(sys.argv[1:]))
