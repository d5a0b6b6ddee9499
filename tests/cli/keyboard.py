"""A terminal for commands that ask."""


class Keyboard:
    """A terminal on which the user types one line."""

    def __init__(self, line: str) -> None:
        self._line = line

    def isatty(self) -> bool:
        return True

    def readline(self) -> str:
        return self._line
