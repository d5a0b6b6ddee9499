"""What the program QwenDeskEngine runs: the engine worker, or the decoding of one file."""

import sys
import traceback


def run() -> int:
    """The process's exit status. An error is printed for the app; left alone, it opens a window on Windows."""
    try:
        from qwendesk.decoding import main as decoding  # noqa: PLC0415 - its errors are meant too

        if sys.argv[1:2] == [decoding.OPTION]:
            return decoding.main(sys.argv[2:])
        from qwendesk.engine.worker.main import main  # noqa: PLC0415 - its errors are meant too

        return main()
    except Exception:  # noqa: BLE001 - whatever it is, the app reads it
        traceback.print_exc()
        return 1


if __name__ == "__main__":
    sys.exit(run())
