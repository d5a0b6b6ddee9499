"""Protocols of the objects of other features that this feature uses. `services.py` gets them as arguments."""

from collections.abc import Callable
from typing import Protocol

from qwendesk.core.app_options import AppOptions
from qwendesk.core.failures import EngineExit, LoadFailure
from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions
from qwendesk.engine.protocol import Devices, LoadReport
from qwendesk.engine.state import EngineState


class AppOptionsSource(Protocol):
    """The app's options and their changes."""

    @property
    def options(self) -> AppOptions: ...

    def subscribe(self, callback: Callable[[AppOptions], None]) -> Callable[[], None]:
        """Call `callback` with the options after each change, until the returned function is called."""
        ...


class ModelEngine(Protocol):
    """The engine: its devices, what it has loaded, and loading."""

    @property
    def observed(self) -> Observed[EngineState]: ...

    async def probe(self) -> Devices | EngineExit: ...

    async def load(self, options: LoadOptions) -> LoadReport | LoadFailure: ...

    async def wait_until_settled(self) -> None:
        """Return when no load is running."""
        ...


class SavedProfiles(Protocol):
    """The load options that the user saved for each model."""

    def applied(self, options: LoadOptions) -> LoadOptions: ...
