"""Which files are on this PC, and which are on their way: what a card's button offers depends on it."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal

import msgspec

from qwendesk.hub.library import Library

Presence = Literal["away", "coming", "here"]


class Have(msgspec.Struct, frozen=True):
    """Files by repository and path within it."""

    here: Mapping[tuple[str, str], str] = MappingProxyType({})
    """Where on disk."""
    coming: frozenset[tuple[str, str]] = frozenset()

    def presence(self, repo: str, path: str) -> Presence:
        if (repo, path) in self.here:
            return "here"
        return "coming" if (repo, path) in self.coming else "away"


def have_of(library: Library, coming: Iterable[tuple[str, str]]) -> Have:
    """Only models that can be loaded count as here. `coming`: what downloads that are not done begin with."""
    here = {
        (model.repo, model.repo_path): model.path
        for model in library.models
        if model.repo and model.repo_path and not model.problem
    }
    return Have(MappingProxyType(here), frozenset(coming))
