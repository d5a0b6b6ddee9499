"""Entry of `make linux-test`, `make gpu-test` and `make gpu-soak`."""

import sys

from tools.linux_tests.command import main

sys.exit(main(sys.argv[1:]))
