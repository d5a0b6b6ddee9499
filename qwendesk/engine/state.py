"""The engine as one frozen value, changed only by `reduce`."""

from enum import StrEnum

import msgspec

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.failures import EngineDeath, LoadFailure
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
    Welcome,
)


class Phase(StrEnum):
    OFF = "off"
    """No worker runs; none is needed, or the last one died."""
    STARTING = "starting"
    IDLE = "idle"
    """A worker runs without a model."""
    LOADING = "loading"
    READY = "ready"
    ANSWERING = "answering"


class WorkerStarting(msgspec.Struct, frozen=True):
    """The client began to start a worker."""


class WorkerEnded(msgspec.Struct, frozen=True):
    """The worker is gone; `death` is None when it was asked to go."""

    death: EngineDeath | None = None


class LoadAsked(msgspec.Struct, frozen=True):
    """A load request was sent."""

    options: LoadOptions


class LoadFailed(msgspec.Struct, frozen=True):
    """A load ended without a model."""

    failure: LoadFailure


class Rested(msgspec.Struct, frozen=True):
    """The model is ejected because nobody asked it anything; None: what rested is not wanted any more."""

    options: LoadOptions | None


EngineNews = AnyEvent | WorkerStarting | WorkerEnded | LoadAsked | LoadFailed | Rested
"""Everything that can change the state: what the worker says, and what the client sees happen to it."""


class EngineState(msgspec.Struct, frozen=True):
    phase: Phase = Phase.OFF
    wanted: LoadOptions | None = None
    """What is being loaded, or was asked for last; a restarted engine loads it again."""
    report: LoadReport | None = None
    """What is loaded; None outside READY and ANSWERING."""
    resting: LoadOptions | None = None
    """What was ejected to free memory and is loaded again by the next question."""
    load_fraction: float = 0.0
    load_stage: str = ""
    failure: LoadFailure | None = None
    death: EngineDeath | None = None
    devices: tuple[DeviceInfo, ...] = ()
    cpu_features: tuple[str, ...] = ()
    welcome: Welcome | None = None


def reduce(state: EngineState, news: EngineNews) -> EngineState:
    """The state after `news`. Pure; news that means nothing here leaves the state as it is."""
    replace = msgspec.structs.replace
    match news:
        case WorkerStarting():
            return replace(state, phase=Phase.STARTING, report=None, death=None)
        case WorkerEnded(death=death):
            return replace(state, phase=Phase.OFF, report=None, death=death, load_fraction=0.0, load_stage="")
        case Welcome():
            return replace(state, phase=Phase.IDLE, welcome=news)
        case Devices(devices=devices, cpu_features=cpu_features):
            return replace(state, devices=devices, cpu_features=cpu_features)
        case LoadAsked(options=options):
            return replace(
                state, phase=Phase.LOADING, wanted=options, report=None, resting=None, failure=None,
                load_fraction=0.0, load_stage="",
            )  # fmt: skip
        case Rested(options=options):
            return replace(state, resting=options)
        case LoadProgress(stage=stage, fraction=fraction) if state.phase is Phase.LOADING:
            return replace(state, load_stage=stage, load_fraction=fraction)
        case Loaded(report=report):
            return replace(state, phase=Phase.READY, report=report, load_fraction=1.0, load_stage="")
        case LoadFailed(failure=failure):
            phase = Phase.OFF if state.phase is Phase.OFF else Phase.IDLE
            return replace(state, phase=phase, report=None, failure=failure, load_fraction=0.0, load_stage="")
        case Unloaded():
            return replace(state, phase=Phase.IDLE, report=None)
        case Rendering() | PromptProgress() if state.phase is Phase.READY:
            return replace(state, phase=Phase.ANSWERING)
        case Finished() | RequestFailed() if state.phase is Phase.ANSWERING:
            return replace(state, phase=Phase.READY)
        case _:
            return state
