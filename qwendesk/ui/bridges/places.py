"""The model folders and the access token for widgets."""

from collections.abc import Coroutine
from typing import Any

import msgspec
from PySide6.QtCore import QObject, Signal

from qwendesk.core.errors import QwenDeskError
from qwendesk.hub.folders import ModelFolders
from qwendesk.hub.token import TokenPlace
from qwendesk.services.models.network import Connection, NetworkService, TokenTest
from qwendesk.services.models.service import ModelsService
from qwendesk.ui.kit.tasks import Tasks


class FoldersBridge(QObject):
    """The user's model folders for widgets."""

    changed = Signal()
    """`folders` are others now."""
    refused = Signal(str)
    """Why a change does not hold."""

    def __init__(self, models: ModelsService, tasks: Tasks) -> None:
        super().__init__()
        self._models, self._tasks = models, tasks
        self._end = models.subscribe_folders(self._on_folders)

    @property
    def folders(self) -> ModelFolders:
        return self._models.folders

    def add_own(self, folder: str) -> None:
        """Another folder of ours, after the others."""
        if folder not in self.folders.models:
            added = tuple(each for each in self.folders.added if each != folder)
            self._set(msgspec.structs.replace(self.folders, models=(*self.folders.models, folder), added=added))

    def add_other(self, folder: str) -> None:
        """Use the models of a folder where they are."""
        if folder not in (*self.folders.models, *self.folders.added):
            self._set(msgspec.structs.replace(self.folders, added=(*self.folders.added, folder)))

    def make_first(self, folder: str) -> None:
        """Downloads go there from now on."""
        others = tuple(each for each in self.folders.models if each != folder)
        self._set(msgspec.structs.replace(self.folders, models=(folder, *others)))

    def remove(self, folder: str) -> None:
        """Look there no more; the files stay. The last one of ours cannot go."""
        own = tuple(each for each in self.folders.models if each != folder)
        added = tuple(each for each in self.folders.added if each != folder)
        if own:
            self._set(msgspec.structs.replace(self.folders, models=own, added=added))

    def use_other_apps(self, wanted: bool) -> None:
        self._set(msgspec.structs.replace(self.folders, other_apps=wanted))

    def close(self) -> None:
        self._end()

    def _set(self, folders: ModelFolders) -> None:
        self._tasks.start(self._told(folders))

    async def _told(self, folders: ModelFolders) -> None:
        try:
            await self._models.set_folders(folders)
        except QwenDeskError as error:
            self.refused.emit(error.sentence)
            self.changed.emit()

    def _on_folders(self, _folders: ModelFolders) -> None:
        self.changed.emit()


class TokenBridge(QObject):
    """The access token for widgets. It is never shown again once it is saved."""

    placed = Signal(str)
    """A TokenPlace: where the token of the present address is."""
    tested = Signal(object)
    """A TokenTest."""

    def __init__(self, network: NetworkService, tasks: Tasks) -> None:
        super().__init__()
        self._network, self._tasks = network, tasks
        self._end = network.subscribe(self._on_connection)

    @property
    def host(self) -> str:
        """The only one that the token is sent to."""
        return self._network.connection.host

    def look(self) -> None:
        """Ask where the token is; `placed` tells."""
        self._tasks.start(self._tell_place(self._network.token_place()))

    def save(self, token: str) -> None:
        self._tasks.start(self._tell_place(self._network.save_token(token)))

    def delete(self) -> None:
        self._tasks.start(self._tell_place(self._network.delete_token()))

    def test(self) -> None:
        """Ask the Hub whose it is; `tested` tells."""
        self._tasks.start(self._test())

    def close(self) -> None:
        self._end()

    async def _tell_place(self, work: Coroutine[Any, Any, TokenPlace]) -> None:
        try:
            place = await work
        except OSError as error:
            sentence = f"The token could not be saved: {error.strerror or error}."
            self.tested.emit(TokenTest(is_good=False, sentence=sentence))
            return
        self.placed.emit(place)

    async def _test(self) -> None:
        self.tested.emit(await self._network.test_token())

    def _on_connection(self, _connection: Connection) -> None:
        self.look()
