"""Adds engine packs that a user has as a file: reads and unpacks them, tries them, and keeps those that run."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from qwendesk.core.engine_manifest import EngineFolder, EngineManifest, EnginePack
from qwendesk.core.json_file import run_in_thread
from qwendesk.core.permissions import make_folder
from qwendesk.core.translation import tr
from qwendesk.engines.engine_choice import INSTALLED, EngineChoiceService
from qwendesk.engines.pack_file import (
    BadPack,
    PackFile,
    adding_alone,
    finish_interrupted,
    not_saved,
    put_in_place,
    read_pack_file,
    unpack,
)
from qwendesk.engines.packs import SCANNER_TIMEOUT_S, this_platform
from qwendesk.engines.trial import EngineTrial

# Looks more closely at an engine that runs, before it is kept.
Examine = Callable[[EngineFolder], Awaitable[None]]


class PackInstaller:
    """Adds packs to the user's own folder of engines. Call its methods on the event loop's thread.

    Whatever interrupts it, the engines that were there stay: a new one gets its place, in one step, when it has run.
    """

    def __init__(self, engines: EngineChoiceService, listed: Sequence[EnginePack]) -> None:
        """`listed` are the packs on the app's own list."""
        self._engines, self._listed = engines, tuple(listed)

    async def read(self, path: Path) -> PackFile:
        """Return the pack at `path`, which may be added once the user agrees. Raises BadPack."""
        pack = await run_in_thread(partial(read_pack_file, path, self._listed))
        await self._engines.find_engines()
        self._check(pack.manifest)
        return pack

    @asynccontextmanager
    async def unpacked(self, pack: PackFile) -> AsyncIterator[EngineFolder]:
        """Unpack a pack and try it in a process of its own; `put_in_place` may then be called.

        Raises BadPack if it does not run here. Without `put_in_place`, nothing is left of it.
        """
        folder = self._engines.user_folder
        try:
            await asyncio.to_thread(make_folder, folder)
            with adding_alone(folder) as is_alone:
                if not is_alone:
                    raise BadPack(tr("Another window or command is adding an engine. Try again when it has finished."))
                try:
                    engine = await run_in_thread(partial(unpack, pack, folder))
                    _check_trial(pack, await self._engines.try_unpacked(engine))
                    yield engine
                finally:
                    await asyncio.to_thread(finish_interrupted, folder)
        except OSError as error:
            raise not_saved(folder, error) from error

    async def add(self, pack: PackFile, examine: Examine | None = None) -> None:
        """Unpack a pack, try its engine, and keep it if it runs. No worker may be using one of its name.

        `examine` may raise BadPack for an engine that runs. Raises BadPack; nothing is left of the pack then.
        """
        async with self.unpacked(pack) as engine:
            if examine is not None:
                await examine(engine)
            await self.put_in_place(engine)

    async def put_in_place(self, engine: EngineFolder) -> None:
        """Give an unpacked engine its place, instead of an older one with its name. No worker may be using that.

        Raises BadPack; the older one stays then.
        """
        await asyncio.to_thread(put_in_place, engine, self._engines.user_folder, SCANNER_TIMEOUT_S)
        self._engines.forget_crashes(engine.name)

    def _check(self, manifest: EngineManifest) -> None:
        """Raise BadPack if the engine is for another PC or release, or has the name of one of the app's engines."""
        reason = self._engines.reason_not_startable(manifest)
        if reason:
            release = self._engines.package_version
            raise BadPack(tr("{0} Get a pack for engine release {1} and for this PC.", reason, release))
        taken = self._engines.engines.find(manifest.name)
        if manifest.name == INSTALLED or (taken is not None and not taken.is_own):
            raise BadPack(
                tr(
                    'QwenDesk has an engine named "{0}" of its own. Ask the maker of the pack for another name.',
                    manifest.name,
                )
            )


def _check_trial(pack: PackFile, trial: EngineTrial) -> None:
    """Raise BadPack if the engine did not run."""
    name = pack.manifest.name
    if trial.crashed and pack.manifest.release:
        raise BadPack(
            tr("{0} doesn't run on this PC, so it was not added. {1} Your engines are unchanged: try a later release.",
               name, trial.reason)
        )  # fmt: skip
    if trial.crashed:
        raise BadPack(
            tr("{0} doesn't run on this PC, so it was not added. {1} Get a pack for {2}.",
               name, trial.reason, this_platform())
        )  # fmt: skip
    if not trial.usable:
        raise BadPack(
            tr("{0} can't be used on this PC yet, so it was not added. {1} Once that is solved, add it again.",
               name, trial.reason)
        )  # fmt: skip
