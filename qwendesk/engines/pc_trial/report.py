"""The report of a trial on a PC: frozen values, and their JSON file without the user's name and folders.

Sizes are in bytes, times in seconds and speeds in tokens per second. None means unknown.
"""

from typing import Any, Literal

import msgspec

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.redaction import redact_user_paths

FORMAT = "qwendesk-pc-trial"
VERSION = 1
MAX_FILE_BYTES = 4 * 1024**2

MemoryPart = Literal["weights", "kv", "recurrent", "compute", "vision"]
MEMORY_PARTS: tuple[MemoryPart, ...] = ("weights", "kv", "recurrent", "compute", "vision")


class PlannedPart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One part of a device's memory: by the planner's formulas, by the engine's dry run, and as it was allocated."""

    device: str
    part: MemoryPart
    planned_bytes: int
    dry_run_bytes: int | None
    allocated_bytes: int


class GpuMemory(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The meter's reading of one GPU, beside nvidia-smi's if the PC has it."""

    name: str
    driver: str
    total_bytes: int | None
    used_bytes: int | None
    shared_used_bytes: int | None
    worker_dedicated_bytes: int | None
    worker_shared_bytes: int | None
    nvidia_smi_used_bytes: int | None


class MemoryReading(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The memory of the PC at one moment."""

    moment: Literal["before", "loaded", "after answers", "unloaded"]
    ram_available_bytes: int | None
    worker_ram_bytes: int | None
    nvidia_smi_worker_bytes: int | None = None
    gpus: tuple[GpuMemory, ...] = ()


class TrialAnswer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The greedy answer to one of the trial's own questions."""

    question: str
    has_picture: bool
    answer: str
    is_expected: bool
    """It contains the words that the demo model was trained to say."""
    is_as_on_cpu: bool | None
    """None if this is the CPU's answer itself, or if the CPU has none."""
    seconds: float


class SpeedAtDepth(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prompt processing and generation after a prompt of about `depth` tokens."""

    depth: int
    prompt_tokens: int
    prefill_tok_s: float | None
    generated_tokens: int
    decode_tok_s: float | None


class SpillSign(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the spill rules say of one GPU after all readings."""

    device: str
    state: str
    excess_bytes: int
    """The most that shared memory grew beyond its baseline."""


class FreedMemory(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Free memory of one device, as a fresh worker reports it before the load and after the unload."""

    device: str
    free_before_bytes: int
    free_after_bytes: int


class ModelRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One model on one engine. What could not be measured is missing, and `problems` says why."""

    is_demo: bool
    on_cpu: bool
    """No GPU was used, although the engine may have one."""
    architecture: str
    quant: str
    file_bytes: int
    n_params: int = 0
    plan_kind: str = ""
    n_ctx: int = 0
    n_gpu_layers: str = ""
    n_cpu_moe: int = 0
    kv_type: str = ""
    load_s: float | None = None
    memory: tuple[PlannedPart, ...] = ()
    readings: tuple[MemoryReading, ...] = ()
    answers: tuple[TrialAnswer, ...] = ()
    speeds: tuple[SpeedAtDepth, ...] = ()
    spill: tuple[SpillSign, ...] = ()
    worker_has_exited: bool | None = None
    freed: tuple[FreedMemory, ...] = ()
    problems: tuple[str, ...] = ()
    """A sentence for each step that failed, ran out of time or was left out."""


class EngineRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One engine of the PC."""

    name: str
    backend: str
    is_usable: bool
    reason: str
    """Why it can't be used; "" if it can."""
    devices: tuple[DeviceInfo, ...] = ()
    models: tuple[ModelRun, ...] = ()


class PcTrialReport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that a trial found."""

    format: str = FORMAT
    version: int = VERSION
    date: str
    """Day of the trial, such as "2026-11-23"."""
    versions: dict[str, str]
    ram_total_bytes: int | None
    physical_cores: int | None
    gpus: tuple[str, ...] = ()
    """The GPUs that the probes found, each with its driver."""
    notes: tuple[str, ...] = ()
    """Sentences of the probes that say what could not be read."""
    engines: tuple[EngineRun, ...] = ()
    problems: tuple[str, ...] = ()
    was_stopped: bool = False
    seconds: float = 0.0


class BadReport(Exception):
    """A file is no report of a trial; the message is a sentence that says why."""


def redacted(report: PcTrialReport) -> PcTrialReport:
    """Return the report without the user's name and folders in any of its texts."""
    return msgspec.convert(_redacted(msgspec.to_builtins(report)), PcTrialReport)


def to_json(report: PcTrialReport) -> bytes:
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


def from_json(content: bytes) -> PcTrialReport:
    """Return the report in a file. Raises BadReport for broken files, other files and reports of another version."""
    try:
        head = decode_json(content)
    except msgspec.DecodeError as error:
        raise BadReport("It is not JSON, or it is incomplete.") from error
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise BadReport("It is not a report of `qwendesk trial`.")
    if head.get("version") != VERSION:
        raise BadReport(f"It has version {head.get('version')!r} of the format, and this tool reads {VERSION}.")
    try:
        return msgspec.convert(head, PcTrialReport)
    except msgspec.ValidationError as error:
        raise BadReport(f"A value is missing or wrong: {error}.") from error


def _redacted(value: Any) -> Any:
    match value:
        case str():
            return redact_user_paths(value)
        case list() | tuple():
            return [_redacted(each) for each in value]
        case dict():
            return {key: _redacted(each) for key, each in value.items()}
        case _:
            return value
