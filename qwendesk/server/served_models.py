"""ServedModels: which models clients can name, and how the one that they name gets loaded."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path, PurePath
from typing import Protocol

import msgspec

from qwendesk.core.failures import LoadFailure
from qwendesk.core.options import LoadOptions
from qwendesk.engine.protocol import LoadReport
from qwendesk.engine.state import EngineState
from qwendesk.server.refusals import Refused


class ModelEngine(Protocol):
    """The part of the engine service that the server uses."""

    @property
    def state(self) -> EngineState: ...

    async def load(self, options: LoadOptions) -> LoadReport | LoadFailure: ...

    async def load_file(self, model: Path) -> LoadReport | LoadFailure: ...

    def reload_idle(self) -> bool: ...

    async def wait_until_settled(self) -> None: ...


class ServedModel(msgspec.Struct, frozen=True):
    id: str
    """The file's name without its ending."""
    is_loaded: bool = False


class ServedModels:
    """Loads a model when it is asked for. Call its methods on the event loop's thread."""

    def __init__(
        self,
        engine: ModelEngine,
        default: Callable[[], Awaitable[LoadOptions]],
        others: Callable[[], Awaitable[Sequence[Path]]] | None = None,
    ) -> None:
        """`default` returns the model to load if none is.

        Only with `others`, which returns the models on this PC, clients can have another one loaded by its name.
        """
        self._engine, self._default, self._others = engine, default, others
        self._loading = asyncio.Lock()

    def with_others(self, others: Callable[[], Awaitable[Sequence[Path]]]) -> "ServedModels":
        """Return the same with models that clients can have loaded."""
        return ServedModels(self._engine, self._default, others)

    @property
    def loaded(self) -> LoadReport | None:
        return self._engine.state.report

    @property
    def is_loading(self) -> bool:
        return self._engine.state.is_loading

    async def all(self) -> tuple[ServedModel, ...]:
        """Return the models, the one that answers now first."""
        loaded = "" if self.loaded is None else model_id(self.loaded.options.model)
        others = await self._others() if self._others is not None else ()
        names = dict.fromkeys((await self.expected(""), *map(model_id, others)))
        return tuple(ServedModel(name, is_loaded=name == loaded) for name in names)

    async def expected(self, name: str) -> str:
        """Return the id of the model that will answer a request for `name`."""
        named = await self._named(name)
        if named is not None:
            return model_id(named)
        return model_id((self.loaded.options if self.loaded is not None else await self._default()).model)

    async def ready(self, name: str) -> LoadReport:
        """Return the loaded model, after loading the one with that name if there is one. Raise Refused.

        Any other name means the model that is loaded, or else the default: programs made for one company's models can
        often send nothing but those models' names.
        """
        async with self._loading:
            result = await self._load_if_needed(await self._named(name))
        if isinstance(result, LoadFailure):
            raise Refused(503, f"{result.title}. {result.sentence}", code="model_not_loaded")
        return result

    async def _load_if_needed(self, named: Path | None) -> LoadReport | LoadFailure:
        self._engine.reload_idle()
        await self._engine.wait_until_settled()
        report = self.loaded
        if report is not None and (named is None or model_id(report.options.model) == model_id(named)):
            return report
        return await (self._engine.load(await self._default()) if named is None else self._engine.load_file(named))

    async def _named(self, name: str) -> Path | None:
        others = await self._others() if self._others is not None and name else ()
        return next((path for path in others if model_id(path).lower() == name.lower()), None)


def model_id(path: str | PurePath) -> str:
    return PurePath(path).stem
