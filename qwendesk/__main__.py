"""Entry of everything: the window, the commands, and the engine worker. Imports none of them before it must."""

import sys
from collections.abc import Sequence

_FOR_THE_COMMAND_LINE = ("-h", "--help", "--version")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs what `arguments` (those of the process by default) ask for; returns the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    first = given[0] if given else ""
    if first == "--worker":
        from qwendesk.engine.worker.main import main as serve

        return serve()
    if first in _FOR_THE_COMMAND_LINE or (first and not first.startswith("-") and not _is_file(first)):
        from qwendesk.cli.main import main as run_command

        return run_command(given)
    from qwendesk.app.main import main as open_window

    return open_window(given)


def _is_file(argument: str) -> bool:
    """Commands are plain words; what has a dot or a slash in it names a file, which the window opens."""
    return any(sign in argument for sign in "./\\")


if __name__ == "__main__":
    sys.exit(main())
