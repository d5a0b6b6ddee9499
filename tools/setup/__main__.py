"""The entry. This file alone must parse on any Python 3, so that an old one gets a sentence and not a SyntaxError."""

import sys

if not (3, 11) <= sys.version_info[:2] <= (3, 14):
    found = ".".join(str(number) for number in sys.version_info[:3])
    sys.exit("QwenDesk needs Python 3.11 to 3.14, and this is " + found + ". Install one of them, then try again.")

from tools.setup.command import main

sys.exit(main(sys.argv[1:]))
