"""What the program QwenDeskEngine runs: the engine worker and nothing else."""

import sys

from qwendesk.engine.worker.main import main

if __name__ == "__main__":
    sys.exit(main())
