"""LatestHeaders: the headers of the files of one model, read once."""

from qwendesk.core.failures import LoadFailure
from qwendesk.core.options import LoadOptions
from qwendesk.engines.load_decision import ModelFiles, ReadFiles, files_of


class LatestHeaders:
    """Keeps the headers that were read last. May be used on several threads: at worst, they are read twice."""

    def __init__(self, read_files: ReadFiles) -> None:
        self._read_files = read_files
        self._kept: tuple[tuple[str, ...], ModelFiles | LoadFailure] | None = None

    def read(self, options: LoadOptions) -> ModelFiles | LoadFailure:
        """Return the headers of the files that `options` name. Blocks, unless they were read last."""
        key, kept = files_of(options), self._kept
        if kept is None or kept[0] != key:
            kept = self._kept = (key, self._read_files(options))
        return kept[1]

    def cached(self, options: LoadOptions) -> ModelFiles | None:
        """Return the headers of this model if they were read last; else None."""
        kept = self._kept
        if kept is None or kept[0][0] != options.model or isinstance(kept[1], LoadFailure):
            return None
        return kept[1]
