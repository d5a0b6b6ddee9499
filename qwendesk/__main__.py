"""Entry point of the window, the commands and the helper processes. Each is imported only when it is needed."""

import gc
import sys
from collections.abc import Sequence

_FOR_THE_COMMAND_LINE = ("-h", "--help", "--version")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the window, command or helper process that `arguments` select and return the exit status.

    The default is the arguments of this process.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    first = given[0] if given else ""
    if first == "--worker":
        from qwendesk.engine.worker.main import main as serve

        return serve()
    if first == "--highlighter":
        from qwendesk.chat.view.answer.highlight import main as highlight

        return highlight()
    if first == "--mcp-host":
        from qwendesk.mcp.host.main import main as talk_to_server

        return talk_to_server()
    if first in _FOR_THE_COMMAND_LINE or (first and not first.startswith("-") and not _is_file(first)):
        from qwendesk.cli.main import main as run_command

        return run_command(given)
    gc.disable()  # until the window is drawn (app/event_loop.py): importing and building it makes no garbage
    from qwendesk.app.application import use_plain_imports

    use_plain_imports()
    from qwendesk.app.main import main as open_window

    return open_window(given)


def _is_file(argument: str) -> bool:
    """Return True if `argument` names a file for the window to open: it has a dot or slash, which no command has."""
    return any(sign in argument for sign in "./\\")


if __name__ == "__main__":
    sys.exit(main())
