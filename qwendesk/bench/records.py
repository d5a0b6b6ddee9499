"""What was measured, kept in a small file: for each PC and model the latest runs."""

import datetime
import math
from collections.abc import Sequence
from pathlib import Path, PurePath

import msgspec
import psutil

from qwendesk.bench.table import BenchRow
from qwendesk.core import paths
from qwendesk.core.devices import DeviceInfo, default_gpus, short_card_name
from qwendesk.core.failures import LoadFailure
from qwendesk.core.json_file import JsonFile
from qwendesk.core.model_titles import model_title
from qwendesk.core.options import DecidedOptions
from qwendesk.core.units import GIB
from qwendesk.engine.protocol import Devices, LoadReport
from qwendesk.engines.load_decision import facts_for, machine_now
from qwendesk.hardware.memory_estimate import memory_use

# How many runs of one model on one PC are kept.
_MOST_RUNS = 5
_MOST_KEPT = 100


# Load options that are files, beside the adapters in `lora`.
_FILES = ("model", "mmproj", "draft_model", "chat_template_file")


class BenchRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the speed tests. It has no folder and no name of a user."""

    at: str
    """Local date and time of the end, to the minute, in ISO format."""
    pc: str
    """GPUs and RAM, such as "RTX 3090 · 64 GB RAM"."""
    file: str
    """The file's name."""
    name: str = ""
    """The model's name in its app, where the file's name differs; else ""."""
    architecture: str
    n_params: int
    size_bytes: int
    backend: str
    cards: tuple[str, ...] = ()
    """The GPUs that it used, each with its memory: "RTX 3090 24 GB"."""
    engine: str
    """Version of llama-cpp-python."""
    planned_bytes: int = 0
    """Memory on all devices by the planner's formulas; 0 if unknown."""
    used_bytes: int = 0
    """Memory on all devices as the engine allocated it; 0 if it didn't say."""
    options: DecidedOptions
    """Load options, without paths."""
    rows: tuple[BenchRow, ...]
    notes: tuple[str, ...] = ()
    """Tests that were left out."""

    @property
    def title(self) -> str:
        return self.name or model_title(self.file)


class _RecordsFile(msgspec.Struct, frozen=True):
    records: tuple[BenchRecord, ...] = ()


class BenchRecords:
    """Owns the file. Its methods block while they access the disk."""

    def __init__(self, file: Path | None = None) -> None:
        path = file or paths.data_folder() / "bench-results.json"
        self._file = JsonFile(path, _RecordsFile, _RecordsFile)

    def latest(self) -> tuple[BenchRecord, ...]:
        """Return all kept runs of all models, the latest first."""
        return tuple(reversed(self._file.read().records))

    def add(self, record: BenchRecord) -> None:
        """Keep a run, and drop the oldest beyond what is kept. A file that can't be written loses only that run."""
        records = [*self._file.read().records, record]
        same = [each for each in records if (each.pc, each.file) == (record.pc, record.file)]
        for old in same[:-_MOST_RUNS]:
            records.remove(old)
        self._file.try_write(_RecordsFile(tuple(records[-_MOST_KEPT:])))


def make_record(
    report: LoadReport,
    devices: Sequence[DeviceInfo],
    engine: str,
    rows: Sequence[BenchRow],
    notes: Sequence[str] = (),
    now: datetime.datetime | None = None,
    *,
    planned_bytes: int = 0,
) -> BenchRecord:
    """Return the record of a run on this PC, with the engine's `devices` and version."""
    options = report.options
    gpus = gpus_of(options, devices)
    without_paths = msgspec.structs.replace(
        options, n_ctx=report.n_ctx, lora=tuple(PurePath(adapter).name for adapter in options.lora),
        **{name: PurePath(getattr(options, name)).name for name in _FILES},
    )  # fmt: skip
    file, title = PurePath(options.model).name, model_title(options.model)
    return BenchRecord(
        at=(now or datetime.datetime.now()).isoformat(timespec="minutes"),
        pc=describe_pc(devices),
        file=file,
        name=title if title != model_title(file) else "",
        architecture=report.architecture,
        n_params=report.n_params,
        size_bytes=report.weights_bytes,
        backend=",".join(dict.fromkeys(gpu.backend for gpu in gpus)) or "CPU",
        cards=card_texts(gpus),
        engine=engine,
        planned_bytes=planned_bytes,
        used_bytes=sum(row.total_bytes for row in report.allocations),
        options=without_paths,
        rows=tuple(rows),
        notes=tuple(notes),
    )


def estimate_bytes(options: DecidedOptions, devices: Sequence[DeviceInfo]) -> int:
    """Return the memory on all devices by the planner's formulas; 0 if a file can't be read. Blocks."""
    files = facts_for(options)
    if isinstance(files, LoadFailure):
        return 0
    machine = machine_now(Devices(id=0, devices=tuple(devices), cpu_features=()))
    memory = memory_use(files[0], options, machine, files[1])
    return sum(device.total_bytes - device.other_bytes - device.gpu_bytes for device in (*memory.gpus, memory.ram))


def card_texts(gpus: Sequence[DeviceInfo]) -> tuple[str, ...]:
    """Return each card with its memory: "RTX 3090 24 GB". Drivers report a little less than the box says."""
    names = (short_card_name(gpu.description or gpu.name) for gpu in gpus)
    sizes = (f" {math.ceil(gpu.total_bytes / GIB)} GB" if gpu.total_bytes else "" for gpu in gpus)
    return tuple(name + size for name, size in zip(names, sizes, strict=True))


def without_names(record: BenchRecord, name: str) -> BenchRecord:
    """Return a record that has `name` for the model, and no name of any file."""
    options = msgspec.structs.replace(record.options, lora=(), **dict.fromkeys(_FILES, ""))
    return msgspec.structs.replace(record, file="", name=name, options=options)


def gpus_of(options: DecidedOptions, devices: Sequence[DeviceInfo]) -> tuple[DeviceInfo, ...]:
    """Return the GPUs that a model with these options uses."""
    if options.n_gpu_layers == 0 or options.devices == ("none",):
        return ()
    if options.devices:
        return tuple(device for device in devices if device.name in options.devices and device.kind != "cpu")
    return default_gpus(devices)


def describe_pc(devices: Sequence[DeviceInfo]) -> str:
    """Return the names of the GPUs, or else of the CPU, and the size of the RAM."""
    chosen = default_gpus(devices) or tuple(device for device in devices if device.kind == "cpu")[:1]
    names = [short_card_name(device.description or device.name) for device in chosen]
    return " · ".join([*names, f"{round(psutil.virtual_memory().total / GIB)} GB RAM"])
