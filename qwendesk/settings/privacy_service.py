"""The data that is stored on this PC, and the user's request to delete all of it."""

import asyncio
from pathlib import Path

import msgspec

from qwendesk.core.observed import Observed
from qwendesk.settings.deletion import (
    DeletionLeftover,
    LinkedFolder,
    StoredData,
    delete_everything,
    find_linked_folders,
    find_stored_data,
    note_deletion,
)


class DeletionRequest(msgspec.Struct, frozen=True):
    """What the user agreed to delete."""

    models: bool
    """True if the models in the app's own folder are deleted too."""
    emptied: tuple[Path, ...] = ()
    """Links whose targets are emptied too."""


class PrivacyState(msgspec.Struct, frozen=True):
    """Stored data and the requested deletion. The data are empty until the first `refresh`."""

    data: tuple[StoredData, ...] = ()
    links: tuple[LinkedFolder, ...] = ()
    """Folders of the app that are links."""
    deletion: DeletionRequest | None = None
    """The request to carry out when the app has closed, if any."""


class PrivacyService:
    """Lists stored data and carries out a deletion. Nothing is deleted before everything else has closed."""

    def __init__(self) -> None:
        self.state = Observed(PrivacyState())

    async def refresh(self) -> None:
        """Update the list of stored data and linked folders."""
        data, links = await asyncio.to_thread(lambda: (find_stored_data(), find_linked_folders()))
        self.state.update(data=data, links=links)

    def request_deletion(self, request: DeletionRequest) -> None:
        """Request a deletion after the app has closed. The window closes the app when this state is set."""
        self.state.update(deletion=request)

    async def note_request(self) -> None:
        """Write a requested deletion to disk, so that the next start knows about it even if the app is killed."""
        request = self.state.value.deletion
        if request is not None:
            await asyncio.to_thread(note_deletion, models=request.models)

    def carry_out(self, host: str) -> tuple[DeletionLeftover, ...]:
        """Carry out the requested deletion, if any, and return what couldn't be deleted. Blocks.

        Call it after everything else in the app has stopped. The access token of the Hub at `host` is deleted too.
        """
        request = self.state.value.deletion
        if request is None:
            return ()
        return delete_everything(models=request.models, emptied=request.emptied, hosts=(host,))
