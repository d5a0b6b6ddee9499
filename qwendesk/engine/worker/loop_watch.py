"""Look for loops in the reasoning and in the answer while their tokens arrive."""

from qwendesk.core.generation_options import GenerationOptions
from qwendesk.engine.worker.repetition import LoopDetector, Part


class LoopWatch:
    """Has a detector for each part of the output in which loops are broken."""

    def __init__(self, options: GenerationOptions) -> None:
        parts: list[Part] = []
        if options.break_loops:
            # An answer in a prescribed form may have to repeat itself.
            parts = ["reasoning"] if options.json_schema or options.grammar else ["reasoning", "answer"]
        self._detectors = {part: LoopDetector(part) for part in parts}
        self._in_loop: dict[Part, bool] = {}
        self._ever_in_loop: set[Part] = set()

    def feed(self, part: Part, token: int, text: str) -> None:
        """Take the next token of `part`. `text` is what the token adds: "" within a character."""
        detector = self._detectors.get(part)
        if detector is None:
            return
        self._in_loop[part] = detector.feed(token, text) is not None
        if self._in_loop[part]:
            self._ever_in_loop.add(part)

    def is_in_loop(self, part: Part) -> bool:
        """Return whether the last token of `part` is in a loop."""
        return self._in_loop.get(part, False)

    def forget_loops(self) -> None:
        """Judge the parts that were in a loop by their next tokens alone.

        If the user continues such an answer, it would otherwise be stopped again at once.
        """
        for part in self._ever_in_loop:
            self._detectors[part] = LoopDetector(part)
        self._ever_in_loop.clear()
        self._in_loop.clear()
