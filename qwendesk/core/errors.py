"""QwenDesk's exceptions. Each has a short title for a heading and a sentence that says what to do next."""

import logging
from collections.abc import Iterator
from types import TracebackType


class QwenDeskError(Exception):
    """Base class of all errors that QwenDesk raises deliberately. Users see `title` and `sentence` unchanged."""

    def __init__(self, title: str, sentence: str, *values: object) -> None:
        """`values` replace {0}, {1}, ... in `sentence`.

        Only the engine worker passes them separately: it has no translations, so the app translates `source`.
        """
        self.title, self.source, self.values = title, sentence, tuple(map(str, values))
        self.sentence = sentence.format(*values) if values else sentence
        super().__init__(f"{title}: {self.sentence}")


class BadOption(QwenDeskError):
    """An option that does not exist, or a value that it cannot take."""


class BadModelFile(QwenDeskError):
    """A model file that cannot be read; `kind` is the LoadFailureKind to report for it."""

    def __init__(self, title: str, sentence: str, kind: str = "not_gguf") -> None:
        super().__init__(title, sentence)
        self.kind = kind


class BadRequest(QwenDeskError):
    """A request that the engine cannot serve, because of a bad grammar or an unreadable image, for example."""


class StoreFailure(QwenDeskError):
    """The chats file can't be read or written; the sentence says what to do."""


# Of one failure; a circle of causes ends there too.
_MOST_CAUSES = 30


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and those that caused it. Errors of several connection attempts are looked into.

    Libraries often leave the cause to `__context__`, which Python sets on its own.
    """
    waiting = [error]
    for _ in range(_MOST_CAUSES):
        if not waiting:
            return
        current = waiting.pop()
        if current is not None:
            yield current
            waiting += [current.__cause__, current.__context__]
            waiting += current.exceptions if isinstance(current, BaseExceptionGroup) else ()


class FailureGuard:
    """Keeps work that is repeated in a task or thread going: `with guard:` ends the round that fails, not the rest.

    Only the first failure is logged, because the next ones are likely the same.
    """

    def __init__(self, logger: logging.Logger, message: str) -> None:
        self._logger, self._message, self._has_failed = logger, message, False

    def __enter__(self) -> None:
        """Begin a round."""

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> bool:
        is_caught = isinstance(error, Exception)
        if is_caught and not self._has_failed:
            self._logger.error(self._message, exc_info=error)
        self._has_failed = self._has_failed or is_caught
        return is_caught
