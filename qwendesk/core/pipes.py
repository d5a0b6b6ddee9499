"""What systems report of pipes that nobody reads any more."""

import errno
import sys


def is_closed_pipe(error: OSError) -> bool:
    """Return True if a write failed because nobody reads the pipe any more. Windows has no error of its own for that.

    Python's subprocess module treats EINVAL in the same way (bpo-19612).
    """
    return isinstance(error, BrokenPipeError) or (sys.platform == "win32" and error.errno == errno.EINVAL)
