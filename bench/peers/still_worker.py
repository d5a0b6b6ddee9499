"""The app's worker without a look at what other programs do: the price of following them, on a quiet PC."""

import sys

from qwendesk.engine.worker.main import main
from qwendesk.engine.worker.threads import Threads

if __name__ == "__main__":
    Threads.look = lambda _threads: None  # type: ignore[assignment, method-assign]
    sys.exit(main())
