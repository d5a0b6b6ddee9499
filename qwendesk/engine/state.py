"""The state of the engine, an immutable value. `reduce` returns the next one."""

from enum import StrEnum

import msgspec

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.failures import EngineExit, LoadFailure
from qwendesk.core.options import LoadOptions
from qwendesk.engine.protocol import (
    AnyEvent,
    Devices,
    Finished,
    Loaded,
    LoadProgress,
    LoadReport,
    PromptProgress,
    Rendering,
    RequestFailed,
    Unloaded,
    WaitsFor,
    Welcome,
)


class Phase(StrEnum):
    OFF = "off"
    """No worker is running: none is needed, or the last one exited."""
    STARTING = "starting"
    IDLE = "idle"
    """A worker is running, without a model."""
    LOADING = "loading"
    READY = "ready"
    ANSWERING = "answering"


class WorkerStarting(msgspec.Struct, frozen=True):
    """The client is starting a worker."""


class WorkerExited(msgspec.Struct, frozen=True):
    """The worker has exited. `engine_exit` is None if it was asked to."""

    engine_exit: EngineExit | None = None


class LoadAsked(msgspec.Struct, frozen=True):
    """A load request was sent. `own` is the window's model if the load is for another program."""

    options: LoadOptions
    own: LoadOptions | None = None


class LoadFailed(msgspec.Struct, frozen=True):
    """A load failed or was cancelled."""

    failure: LoadFailure


class IdleUnloaded(msgspec.Struct, frozen=True):
    """An idle unload of the model with these options. None means that the unloaded model is no longer wanted."""

    options: LoadOptions | None


class QuestionsHeld(msgspec.Struct, frozen=True):
    """From now on questions to an unloaded model wait, or no longer do."""

    held: bool


class WorkerSilent(msgspec.Struct, frozen=True):
    """Nothing has come from the worker for seconds, although it says every second that it isn't frozen; or it has."""

    silent: bool


class SavingStates(msgspec.Struct, frozen=True):
    """Before an unload, the states of chats are now being written to files, or no longer are."""

    saving: bool


# Everything that can change the state: events of the worker, and what the client reports about it.
EngineEvent = (
    AnyEvent
    | WorkerStarting
    | WorkerExited
    | WorkerSilent
    | LoadAsked
    | LoadFailed
    | IdleUnloaded
    | QuestionsHeld
    | SavingStates
)


class EngineState(msgspec.Struct, frozen=True):
    phase: Phase = Phase.OFF
    requested: LoadOptions | None = None
    """The options of the current or last load as the user set them, with "auto" not yet decided."""
    report: LoadReport | None = None
    """The loaded model; None unless READY or ANSWERING."""
    idle_unloaded: LoadOptions | None = None
    """How the window's model was loaded, while it is unloaded for a time or makes room for the model that another
    program asked for: the next question in the window loads it again.
    """
    questions_held: bool = False
    """True if a question to an unloaded model waits, because another program needs the memory."""
    waits_for: WaitsFor | None = None
    """Whose answer comes before the window's question, although the window comes first otherwise."""
    is_silent: bool = False
    """True if the worker seems to be frozen. It is killed if that lasts."""
    is_saving_states: bool = False
    """True if an unload waits for the states of chats to be written to files."""
    load_fraction: float = 0.0
    load_stage: str = ""
    failure: LoadFailure | None = None
    engine_exit: EngineExit | None = None
    devices: tuple[DeviceInfo, ...] = ()
    cpu_features: tuple[str, ...] = ()
    welcome: Welcome | None = None

    @property
    def local_report(self) -> LoadReport | None:
        """The loaded model if it takes memory of this PC; None for a model on a server."""
        return self.report if self.report is not None and self.report.served_by is None else None

    @property
    def model(self) -> str:
        """The model that is loaded, loading or unloaded while idle, as in `LoadOptions.model`; "" if there is none."""
        options = self.requested if self.report is not None or self.is_loading else self.idle_unloaded
        return options.model if options is not None else ""

    @property
    def is_loading(self) -> bool:
        """Whether a model is being loaded. A worker also starts without one, to list the devices."""
        is_starting = self.phase in (Phase.STARTING, Phase.LOADING)
        return is_starting and self.requested is not None and self.failure is None


def reduce(state: EngineState, event: EngineEvent) -> EngineState:
    """Return the state after `event`; the same state if `event` does not change it."""
    replace = msgspec.structs.replace
    if state.waits_for is not None and getattr(event, "id", 0) == state.waits_for.id:
        state = replace(state, waits_for=None)
    match event:
        case WaitsFor():
            return replace(state, waits_for=event)
        case WorkerStarting():
            return replace(state, phase=Phase.STARTING, report=None, engine_exit=None, is_silent=False)
        case WorkerExited(engine_exit=engine_exit):
            return replace(
                state, phase=Phase.OFF, report=None, engine_exit=engine_exit, load_fraction=0.0, load_stage="",
                is_silent=False, waits_for=None,
            )  # fmt: skip
        case Welcome():
            return replace(state, phase=Phase.IDLE, welcome=event)
        case Devices(devices=devices, cpu_features=cpu_features):
            return replace(state, devices=devices, cpu_features=cpu_features)
        case LoadAsked(options=options, own=own):
            return replace(
                state, phase=Phase.LOADING, requested=options, report=None, idle_unloaded=own, failure=None,
                questions_held=False, load_fraction=0.0, load_stage="",
            )  # fmt: skip
        case IdleUnloaded(options=options):
            return replace(state, idle_unloaded=options, questions_held=state.questions_held and options is not None)
        case QuestionsHeld(held=held):
            return replace(state, questions_held=held)
        case WorkerSilent(silent=silent):
            return replace(state, is_silent=silent)
        case SavingStates(saving=saving):
            return replace(state, is_saving_states=saving)
        case LoadProgress(stage=stage, fraction=fraction) if state.phase is Phase.LOADING:
            return replace(state, load_stage=stage, load_fraction=fraction)
        case Loaded(report=report):
            return replace(state, phase=Phase.READY, report=report, load_fraction=1.0, load_stage="")
        case LoadFailed(failure=failure) if state.report is not None:  # it was found out before this was unloaded
            return replace(state, failure=failure)
        case LoadFailed(failure=failure):
            phase = Phase.OFF if state.phase is Phase.OFF else Phase.IDLE
            return replace(state, phase=phase, report=None, failure=failure, load_fraction=0.0, load_stage="")
        case Unloaded():
            return replace(state, phase=Phase.IDLE, report=None)
        case Rendering() | PromptProgress() if state.phase is Phase.READY:
            return replace(state, phase=Phase.ANSWERING, failure=None)
        case Finished() | RequestFailed() if state.phase is Phase.ANSWERING:
            return replace(state, phase=Phase.READY)
        case _:
            return state
