"""The entry. This file alone must parse on any Python, so that a wrong one gets a sentence and not a SyntaxError.

`--check-python` only judges the Python that runs it: it exits with 0 if the set-up takes it, else with 3.
"""

import platform
import sys
import sysconfig

kinds = []
if platform.python_implementation() != "CPython":
    kinds.append(platform.python_implementation())
if sys.maxsize < 2**32:
    kinds.append("32-bit")
if sysconfig.get_config_var("Py_GIL_DISABLED"):
    kinds.append("free-threaded")
if sysconfig.get_platform().startswith("mingw"):
    kinds.append("MSYS2")
checks_only = sys.argv[1:] == ["--check-python"]

if kinds or not (3, 11) <= sys.version_info[:2] <= (3, 15):
    found = ".".join(str(number) for number in sys.version_info[:3]) + (" (" + ", ".join(kinds) + ")" if kinds else "")
    place = "from your system's packages or from https://www.python.org/downloads/"
    if sys.platform == "win32":
        place = '("Windows installer (64-bit)") from https://www.python.org/downloads/windows/'
    sentence = "QwenDesk needs Python 3.11 to 3.15, and this is " + found + ". Install Python 3.13 " + place
    sys.stderr.write(sentence + ", then try again.\n")
    sys.exit(3 if checks_only else 1)

if checks_only:
    sys.exit(0)

from tools.setup.command import main  # noqa: E402 - not before this Python was judged

sys.exit(main(sys.argv[1:]))
