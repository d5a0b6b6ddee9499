"""Which engine can load a model of an architecture that this app's own engines don't know.

Other releases of llama.cpp state in their `engine.json` what they can load, as their source says. The newest release
that was seen, on this PC or not, stands in the file of `engines/engine_updates.py`.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from qwendesk.core import paths
from qwendesk.core.engine_manifest import MANIFEST_NAME
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.translation import tr
from qwendesk.core.units import show_bytes

UPDATES_NAME = "engine-updates.json"


class SeenRelease(msgspec.Struct, frozen=True):
    """The newest release of llama.cpp that was seen."""

    tag: str
    architectures: tuple[str, ...] = ()
    n_types: int = 0
    download_bytes: int = 0


class _Engine(msgspec.Struct, frozen=True):
    """What this module reads of an `engine.json`."""

    name: str
    architectures: tuple[str, ...] = ()
    n_types: int = 0


class _Updates(msgspec.Struct, frozen=True):
    found: SeenRelease | None = None


class EngineKnowledge(msgspec.Struct, frozen=True):
    """What other releases of llama.cpp can load."""

    here: Mapping[str, tuple[str, ...]] = {}
    """The architectures that engines of other releases on this PC know, by the name of the engine."""
    n_types: int = 0
    """The most tensor types that one of them knows; 0 if there is none."""
    newest: SeenRelease | None = None

    def engine_for(self, architecture: str) -> str:
        """Return the name of an engine on this PC that knows the architecture; "" if there is none."""
        return next((name for name, known in self.here.items() if architecture in known), "")

    def knows_type(self, number: int) -> bool:
        """Return whether an engine of another release on this PC knows the tensor type with this number."""
        return number < self.n_types

    def advice(self, architecture: str) -> str:
        """Return which engine can load such a model, in a sentence or two."""
        name, newest = self.engine_for(architecture), self.newest
        if name:
            return tr("The engine {0} on this PC knows it: choose it on the Engine page.", name)
        if newest is None or not newest.architectures:
            return may_need_newer()
        if architecture in newest.architectures:
            size = show_bytes(newest.download_bytes)
            return tr("It needs a newer engine: {0} has it. Get it on the Engine page ({1}).", newest.tag, size)
        return tr(
            "No engine has it yet: {0}, llama.cpp's newest release at the last check, doesn't know it. Check again "
            "later on the Engine page.",
            newest.tag,
        )


NO_OTHERS = EngineKnowledge()
"""What is known where there is no other release and nobody has looked for one."""


def may_need_newer() -> str:
    """Return the advice for something of which no list tells which engine knows it."""
    return tr("A newer engine may know it: check for one on the Engine page.")


def read_knowledge(places: Sequence[Path] | None = None) -> EngineKnowledge:
    """Read what the engines in `places`, and the last check, say. Files that can't be read say nothing."""
    places = paths.engine_places() if places is None else places
    engines = [each for place in places for each in _engines_in(place)]
    here = {each.name: each.architectures for each in engines if each.architectures}
    try:
        newest = decode_json((places[-1] / UPDATES_NAME).read_bytes(), _Updates).found
    except (OSError, msgspec.DecodeError):
        newest = None
    return EngineKnowledge(here, max((each.n_types for each in engines), default=0), newest)


def _engines_in(place: Path) -> Iterator[_Engine]:
    for file in sorted(place.glob(f"*/{MANIFEST_NAME}")):
        try:
            yield decode_json(file.read_bytes(), _Engine)
        except (OSError, msgspec.DecodeError):
            continue
