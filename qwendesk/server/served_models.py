"""ServedModels: which models clients can name, and how the one that they name gets loaded."""

import asyncio
import os
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePath

import msgspec

from qwendesk.core.app_options import AppOptions
from qwendesk.core.failures import LoadFailure
from qwendesk.core.file_names import model_name
from qwendesk.core.model_titles import model_title
from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions
from qwendesk.core.served_model import is_served
from qwendesk.engine.load_failures import cancelled_load
from qwendesk.engine.protocol import LoadReport
from qwendesk.engines.engine_service import EngineService
from qwendesk.models.library_service import LibraryService
from qwendesk.server.refusals import Refused

# How many models a refusal names.
_MOST_NAMED = 12
# Names that mean the loaded model: those of the companies that programs are made for, which can often send no others,
# and what people and our set-ups write where a program wants any name.
_NO_NAME = re.compile(
    r"(openai/|anthropic/|google/)?(gpt-(?!oss)|chatgpt|codex|o[1-9](-|$)|text-|davinci|claude|gemini)"
    r"|(qwendesk/)?(qwendesk|default|auto|local|local-model|model)?$",
    re.IGNORECASE,
)


async def _none() -> None:
    return None


def named_models(library: LibraryService, app: Observed[AppOptions]) -> Callable[[], Awaitable[Sequence[Path] | None]]:
    """Return what lists the models that clients can name: all on this PC, if the user lets them."""

    async def models() -> list[Path] | None:
        return [Path(model.path) for model in await library.usable()] if app.value.serve_any_model else None

    return models


class ListedModel(msgspec.Struct, frozen=True):
    id: str
    is_loaded: bool = False


class ServedModels:
    """Loads a model when it is asked for. Call its methods on the event loop's thread."""

    def __init__(
        self,
        engine: EngineService,
        default: Callable[[], Awaitable[LoadOptions]],
        others: Callable[[], Awaitable[Sequence[Path] | None]] = _none,
        obstacle: Callable[[], str] = lambda: "",
    ) -> None:
        """`default` returns the model to load if none is.

        `others` returns the models on this PC that clients can have loaded by their names; None if every name means
        the loaded model. `obstacle` says why no model may be loaded now; "" if one may.
        """
        self._engine, self._default, self._others, self._obstacle = engine, default, others, obstacle
        self._loading = asyncio.Lock()

    @property
    def loaded(self) -> LoadReport | None:
        return self._engine.state.report

    @property
    def is_loading(self) -> bool:
        return self._engine.state.is_loading

    @property
    def is_frozen(self) -> bool:
        return self._engine.state.is_silent

    async def all(self) -> tuple[ListedModel, ...]:
        """Return the models, first the one that answers a request without a name."""
        loaded = "" if self.loaded is None else self.loaded.options.model
        ids, _ = await self._known()
        return tuple(ListedModel(name, is_loaded=_same(model, loaded)) for name, model in ids.items())

    async def expected(self, name: str) -> str:
        """Return the id of the model that will answer a request for `name`. Raise Refused if there is none."""
        ids, model = await self._known(name)
        return next(key for key, each in ids.items() if model is None or each == model)

    async def ready(self, name: str) -> LoadReport:
        """Return the loaded model, after loading the one with that name if there is one. Raise Refused."""
        _, model = await self._known(name)
        await self._engine.wait_until_settled()  # a load goes on while someone waits for it, even if its client leaves
        async with self._loading:
            result = await self._load_if_needed(model)
        if isinstance(result, LoadFailure) and result.kind == "cancelled":
            raise Refused(503, "Another model was loaded meanwhile. Ask again later.", code="model_not_loaded")
        if isinstance(result, LoadFailure):
            raise Refused(503, f"{result.title}. {result.sentence}", code="model_not_loaded")
        return result

    async def _load_if_needed(self, model: str | None) -> LoadReport | LoadFailure:
        engine = self._engine
        await engine.wait_until_settled()
        report, own = self.loaded, engine.state.idle_unloaded
        if report is not None and (model is None or _same(model, report.options.model)):
            return report
        if obstacle := self._obstacle():
            raise Refused(503, obstacle, code="model_not_loaded")
        if report is None and own is not None and (model is None or _same(model, own.model)):
            engine.reload_idle()
            await engine.wait_until_settled()
            return self.loaded or engine.state.failure or cancelled_load()
        if model is None or is_served(model):
            return await engine.load(await self._default())
        return await engine.load(await engine.options_for(Path(model)), for_others=True)

    async def _known(self, name: str = "") -> tuple[dict[str, str], str | None]:
        """Return the models by their ids, first the one that answers without a name, and the one that `name` means.

        That is None if any will do. Raise Refused if there is no such model.
        """
        loaded = "" if self.loaded is None else self.loaded.options.model
        others = await self._others()
        ids = model_ids((loaded or (await self._default()).model, *map(str, others or ())))
        return ids, None if others is None else find_model(name, ids, loaded)


def find_model(name: str, ids: Mapping[str, str], loaded: str = "") -> str | None:
    """Return the model that `name` means; None if it names no model of this PC, but may be any. Raise Refused.

    A model is named by its id, by the name of its file, or by the beginning of it up to the quant. Where several have
    that name, the loaded one is meant.
    """
    wanted = name.strip().lower().removesuffix(".gguf")
    if (exact := next((model for key, model in ids.items() if key.lower() == wanted), None)) is not None:
        return exact
    beginning = re.compile(re.escape(wanted.replace(":", "-") or "/") + r"(?![a-z0-9])")
    found = [
        model
        for key, model in ids.items()
        if beginning.match(PurePath(key).name.lower())
        or wanted in (PurePath(model).stem.lower(), model.lower().removesuffix(".gguf"))
    ]
    if len(found) == 1 or any(_same(model, loaded) for model in found):
        return next((model for model in found if _same(model, loaded)), found[0])
    if not found and _NO_NAME.match(wanted):
        return None
    meant = [key for key, model in ids.items() if model in found]
    raise Refused(404, _unknown(name, meant, list(ids)), code="model_not_found", param="model")


def _unknown(name: str, meant: Sequence[str], ids: Sequence[str]) -> str:
    shown = ", ".join((meant or ids)[:_MOST_NAMED])
    if meant:
        return f'"{name}" may be any of these models: {shown}. Name one of them.'
    rest = "" if len(ids) <= _MOST_NAMED else f" and {len(ids) - _MOST_NAMED} more"
    return f'There is no model "{name}" on this PC. There are: {shown}{rest}. GET /v1/models lists them.'


def model_ids(models: Iterable[str]) -> dict[str, str]:
    """Return the models by their ids: the name of the file, with as many folders as tell it from all others."""
    by_path: dict[str, str] = {}
    for model in models:
        by_path.setdefault(os.path.normcase(model), model)
    known = tuple(by_path.values())
    ids = dict.fromkeys(known, "")
    for depth in range(1, max(len(_names(model)) for model in known) + 1):
        tails = {model: "/".join(_names(model)[-depth:]) for model in known}
        counted = Counter(tail.lower() for tail in tails.values())
        for model, tail in tails.items():
            if not ids[model] and (counted[tail.lower()] == 1 or depth >= len(_names(model))):
                ids[model] = tail
    return {ids[model]: model for model in known}


def _names(model: str) -> tuple[str, ...]:
    """Return the folders of a model and its name."""
    if is_served(model):
        return (model_title(model).replace("/", "-"),)
    return *PurePath(model).parent.parts, model_name(model)


def _same(model: str, other: str) -> bool:
    return os.path.normcase(model) == os.path.normcase(other)
