"""What each program left on this PC: the models that load here, and why others don't. Pure."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from qwendesk.core.translation import join_list, tr, tr_n
from qwendesk.hub.library import Library, LibraryModel
from qwendesk.hub.library_places import ORIGIN_NAMES, Origin, SearchFolder

# Names that a sentence lists before it counts the rest.
_MOST_NAMES = 3


class AppModels(msgspec.Struct, frozen=True):
    """The models of one program, or those in the user's own folders."""

    origin: Origin
    usable: tuple[LibraryModel, ...] = ()
    """Largest first."""
    refusals: tuple[str, ...] = ()
    """Sentences that name what can't be used, and why."""

    @property
    def app(self) -> str:
        """The program's name; "" for the user's own folders."""
        return "" if self.origin in ("ours", "folder") else tr(ORIGIN_NAMES[self.origin])


def models_by_app(library: Library, searched: Sequence[SearchFolder]) -> tuple[AppModels, ...]:
    """Return what each program left, those with the most usable models first. `searched` are the folders scanned."""
    origins: tuple[Origin, ...] = tuple(ORIGIN_NAMES)
    found = (AppModels(each, _usable(library, each), _refusals(library, each, searched)) for each in origins)
    return tuple(sorted((each for each in found if each.usable or each.refusals), key=lambda app: -len(app.usable)))


def _usable(library: Library, origin: Origin) -> tuple[LibraryModel, ...]:
    models = (each for each in library.models if each.origin == origin and not each.problem)
    return tuple(sorted(models, key=lambda model: -model.n_bytes))


def _refusals(library: Library, origin: Origin, searched: Sequence[SearchFolder]) -> tuple[str, ...]:
    app = tr(ORIGIN_NAMES[origin])
    sentences = [
        each.problem if each.name in each.problem else tr("{0}: {1}", each.name, each.problem)
        for each in library.models
        if each.origin == origin and each.problem
    ]
    others = [each.name for each in library.other_formats if each.origin == origin]
    if others:
        n_more = len(others) - _MOST_NAMES
        names = [*others[:_MOST_NAMES], *((tr_n("{0} more", "{0} more", n_more),) if n_more > 0 else ())]
        sentences.append(tr("Not GGUF files, so only {0} loads them: {1}.", app, join_list(names)))
    closed = {Path(each.path) for each in searched if each.origin == origin} & set(map(Path, library.unreadable))
    sentences += [_closed_text(origin, folder) for folder in sorted(closed)]
    return tuple(sentences)


def _closed_text(origin: Origin, folder: Path) -> str:
    if origin == "ollama":
        # Ollama's installer for Linux makes the group, and adds the user who installs it.
        return tr("Your account may not read {0}. Join the group ollama, and sign in again.", folder)
    return tr("Your account may not read {0}.", folder)
