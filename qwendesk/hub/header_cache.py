"""HeaderCache: parsed headers of model files, shared by all code that reads them."""

import logging
import threading
from collections import OrderedDict
from pathlib import Path

import msgspec

from qwendesk import __version__
from qwendesk.core import paths
from qwendesk.core.errors import BadModelFile
from qwendesk.core.files import is_utf8, write_whole
from qwendesk.core.model_facts import ModelFacts
from qwendesk.hub.gguf import read_facts, read_file_facts

_logger = logging.getLogger(__name__)

# Headers stored by another release are not used, because it may read more values or interpret them differently.
_FORMAT = f"2 {__version__} {','.join(ModelFacts.__struct_fields__)}"
_VISION_TENSOR_PREFIX = "v."
# For how many files the tensors are kept in memory: about 0.2 MB each.
_MAX_WITH_TENSORS = 64
# Size, modification time and inode.
_Stamp = tuple[int, int, int]


class HeaderSummary(msgspec.Struct, frozen=True, array_like=True):
    """The facts from one file's header, or why it can't be read."""

    n_bytes: int
    mtime_ns: int
    facts: ModelFacts | None
    """Without the tensors, which take most of the memory."""
    problem: str = ""
    """Reason why there are no facts, in a sentence."""
    has_vision_tensors: bool = False


class _StoredHeaders(msgspec.Struct):
    format: str
    headers: dict[str, HeaderSummary]


class HeaderCache:
    """Reads the header of each file once while its size and modification time stay the same. Thread-safe.

    Whole headers stay in memory for the files used last. Summaries of all files of a scan are stored on disk, so that a
    library of hundreds of files opens without reading one.
    """

    def __init__(self, file: Path | None = None) -> None:
        """`file` stores the summaries between runs; by default it is in the app's cache folder."""
        self._file = file or paths.cache_folder() / "model-headers.msgpack"
        self._lock = threading.Lock()
        self._stored: dict[str, HeaderSummary] | None = None
        self._used: dict[str, HeaderSummary] = {}
        self._whole: OrderedDict[str, tuple[_Stamp, ModelFacts]] = OrderedDict()

    def read_facts(self, path: Path) -> ModelFacts:
        """Return the facts of a model, from all shards of a split one. Raises BadModelFile like `gguf.read_facts`."""
        return read_facts(path, self.read_file_facts)

    def read_file_facts(self, path: Path) -> ModelFacts:
        """Return the facts of one file or shard. Raises BadModelFile like `gguf.read_facts`."""
        stamp = _stamp(path)
        with self._lock:
            known = self._whole.get(str(path))
            if known is not None and known[0] == stamp:
                self._whole.move_to_end(str(path))
                return known[1]
        facts = read_file_facts(path)
        if stamp is not None:
            with self._lock:
                self._whole[str(path)] = stamp, facts
                self._whole.move_to_end(str(path))
                while len(self._whole) > _MAX_WITH_TENSORS:
                    self._whole.popitem(last=False)
        return facts

    def summary(self, path: str, n_bytes: int, mtime_ns: int) -> HeaderSummary:
        """Return the summary of the file at `path`, which now has this size and modification time.

        Of a split model, return the summary of this shard only.
        """
        with self._lock:
            if self._stored is None:
                self._stored = self._load()
            known = self._used.get(path) or self._stored.get(path)
        if known is None or (known.n_bytes, known.mtime_ns) != (n_bytes, mtime_ns):
            known = self._summarize(Path(path), n_bytes, mtime_ns)
        with self._lock:
            self._used[path] = known
        return known

    def save(self) -> None:
        """Store the summaries that were requested since the last `save`, and no others. Write only if they changed."""
        with self._lock:
            used, self._used = self._used, {}
            if used == self._stored:
                return
            self._stored = used
        # Problems are not stored: they may be gone the next time, and they are in the user's current language.
        lasting = {path: each for path, each in used.items() if each.facts is not None and is_utf8(path)}
        try:
            write_whole(self._file, msgspec.msgpack.encode(_StoredHeaders(_FORMAT, lasting)))
        except OSError as error:
            _logger.warning("%s could not be written: %s", self._file, error.strerror or error)

    def _summarize(self, path: Path, n_bytes: int, mtime_ns: int) -> HeaderSummary:
        try:
            facts = self.read_file_facts(path)
        except BadModelFile as error:
            # A drive may reappear, or access may be allowed, without a change of the file. With a size of -1 it is
            # read again the next time.
            size = -1 if isinstance(error.__cause__, OSError) else n_bytes
            return HeaderSummary(size, mtime_ns, None, error.sentence)
        has_vision = any(tensor.name.startswith(_VISION_TENSOR_PREFIX) for tensor in facts.tensors)
        summary = msgspec.structs.replace(facts, tensors=())
        return HeaderSummary(n_bytes, mtime_ns, summary, has_vision_tensors=has_vision)

    def _load(self) -> dict[str, HeaderSummary]:
        try:
            stored = msgspec.msgpack.decode(self._file.read_bytes(), type=_StoredHeaders)
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            _logger.info("%s is not used: %s", self._file, error)
            return {}
        return stored.headers if stored.format == _FORMAT else {}


def _stamp(path: Path) -> _Stamp | None:
    """Return size, modification time and inode, which change with the file; None if there is no such file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino
