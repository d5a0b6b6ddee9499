"""What the headers of many files say, read once and remembered: a library of hundreds of files opens at once."""

import logging
from pathlib import Path

import msgspec

from qwendesk import __version__
from qwendesk.core import paths
from qwendesk.core.errors import BadModelFile
from qwendesk.core.files import write_whole
from qwendesk.core.model_facts import ModelFacts
from qwendesk.hub.gguf import read_part

_logger = logging.getLogger(__name__)

_FORMAT = f"1 {__version__} {','.join(ModelFacts.__struct_fields__)}"
"""Another release may read more, or otherwise: what an older one remembered does not count then."""
_VISION_TENSORS = "v."
"""How tensors of a picture encoder are named."""
_NOT_LASTING = -1
"""In place of a size: no file has it, so what goes with it is never taken for known."""


class Header(msgspec.Struct, frozen=True, array_like=True):
    """What one file's header says, or why it does not."""

    n_bytes: int
    mtime_ns: int
    facts: ModelFacts | None
    """Without the tensors, which are most of it: `hub.gguf.read_facts` has them."""
    problem: str = ""
    """A sentence, when there are no facts."""
    has_vision_tensors: bool = False


class _Remembered(msgspec.Struct):
    format: str
    headers: dict[str, Header]


class Headers:
    """Reads headers, each once while size and modification time of its file stay. Used by one thread at a time."""

    def __init__(self, file: Path | None = None) -> None:
        """`file` is where they are remembered between runs; usually in the app's cache folder."""
        self._file = file or paths.cache_folder() / "model-headers.msgpack"
        self._saved: dict[str, Header] | None = None
        self._used: dict[str, Header] = {}

    def of(self, path: str, n_bytes: int, mtime_ns: int) -> Header:
        """The header of the file at `path`, which has that size and time now. Of a split set: of this part alone."""
        if self._saved is None:
            self._saved = self._read()
        known = self._used.get(path) or self._saved.get(path)
        if known is None or (known.n_bytes, known.mtime_ns) != (n_bytes, mtime_ns):
            known = _read_header(Path(path), n_bytes, mtime_ns)
        self._used[path] = known
        return known

    def save(self) -> None:
        """Remembers what was asked for since the last time, and nothing else; writes only what changed."""
        used, self._used = self._used, {}
        if used == self._saved:
            return
        self._saved = used
        lasting = {path: header for path, header in used.items() if header.n_bytes != _NOT_LASTING}
        try:
            write_whole(self._file, msgspec.msgpack.encode(_Remembered(_FORMAT, lasting)))
        except OSError as error:
            _logger.warning("Headers of model files could not be remembered: %s", error)

    def _read(self) -> dict[str, Header]:
        try:
            remembered = msgspec.msgpack.decode(self._file.read_bytes(), type=_Remembered)
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            _logger.info("%s is not used: %s", self._file, error)
            return {}
        return remembered.headers if remembered.format == _FORMAT else {}


def _read_header(path: Path, n_bytes: int, mtime_ns: int) -> Header:
    try:
        facts = read_part(path)
    except BadModelFile as error:
        # A drive may be back, or a right given, without any change of the file: that is asked again.
        lasts = not isinstance(error.__cause__, OSError)
        return Header(n_bytes if lasts else _NOT_LASTING, mtime_ns, None, error.sentence)
    sees = any(tensor.name.startswith(_VISION_TENSORS) for tensor in facts.tensors)
    return Header(n_bytes, mtime_ns, msgspec.structs.replace(facts, tensors=()), has_vision_tensors=sees)
