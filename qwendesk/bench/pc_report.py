"""The report of a trial on a PC: its values, its Markdown page, and its files without the user's name and folders.

Sizes are in bytes, times in seconds and speeds in tokens per second. None means unknown.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from qwendesk.bench.records import BenchRecord
from qwendesk.bench.share import share_text
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.files import write_whole
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.permissions import make_folder
from qwendesk.core.redaction import redact_user_paths
from qwendesk.core.translation import tr
from qwendesk.core.units import MIB, show_bytes, show_duration

FORMAT = "qwendesk-pc-trial"
VERSION = 2
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
    """True if it contains the words that the demo model was trained to say."""
    is_as_on_cpu: bool | None
    """None if this is the CPU's answer itself, or if the CPU has none."""
    seconds: float


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
    plan: str = ""
    """What the planner decided, in llama.cpp's words."""
    load_s: float | None = None
    record: BenchRecord | None = None
    """How it was loaded, and its speeds; None if it was not loaded. It names no file of the user's."""
    memory: tuple[PlannedPart, ...] = ()
    readings: tuple[MemoryReading, ...] = ()
    answers: tuple[TrialAnswer, ...] = ()
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
    """Reason why it can't be used; "" if it can."""
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


def share_table(report: PcTrialReport) -> str:
    """Return the speeds of all models as Markdown, as the speed tests copy those of one."""
    models = (model for engine in report.engines for model in engine.models)
    return "\n".join(share_text(model.record) for model in models if model.record is not None and model.record.rows)


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


# The versions that the page shows, each with its name.
_VERSIONS = (
    ("qwendesk", "QwenDesk"),
    ("system", "System"),
    ("python", "Python"),
    ("llama-cpp-python", "llama-cpp-python"),
)

# Characters to which the columns of a table are aligned at most.
_WIDEST = 30


def report_page(report: PcTrialReport) -> str:
    """Return the report as Markdown, in the user's language."""
    lines = [f"# {tr('Trial of QwenDesk on this PC')}", "", *_introduction(report), *_pc(report)]
    for engine in report.engines:
        lines += _engine(engine, report.ram_total_bytes)
    lines += _problems(report.problems)
    return "\n".join(lines).rstrip() + "\n"


def _introduction(report: PcTrialReport) -> Iterator[str]:
    yield tr(
        "It has measurements only: no chats, no names of your files, and no user name. Its answers are to the "
        "trial's own questions."
    )
    yield ""
    if report.was_stopped:
        yield tr("The trial was stopped early. What was measured until then is here.")
        yield ""


def _pc(report: PcTrialReport) -> Iterator[str]:
    yield f"## {tr('This PC')}"
    yield ""
    yield f"- {tr('Date')}: {report.date}, {tr('measured for {0}', show_duration(report.seconds))}"
    for key, name in _VERSIONS:
        if key in report.versions:
            yield f"- {name}: {report.versions[key]}"
    if report.ram_total_bytes is not None:
        yield f"- {tr('RAM')}: {show_bytes(report.ram_total_bytes)}"
    if report.physical_cores is not None:
        yield f"- {tr('CPU cores')}: {report.physical_cores}"
    yield f"- {tr('GPUs')}: {', '.join(report.gpus) or tr('none found')}"
    yield from (f"- {note}" for note in report.notes)
    yield ""


def _engine(engine: EngineRun, ram_total_bytes: int | None) -> Iterator[str]:
    yield f"## {tr('Engine {0}', engine.name)}"
    yield ""
    if not engine.is_usable:
        yield engine.reason or tr("It was not tried.")
        yield ""
        return
    for device in engine.devices:
        known = device.total_bytes is not None and device.free_bytes is not None
        free, total = show_bytes(device.free_bytes or 0), show_bytes(device.total_bytes or 0)
        memory = f", {tr('{0} of {1} free', free, total)}" if known else ""
        yield f"- {device.name}: {device.description} ({device.kind}{memory})"
    yield ""
    for model in engine.models:
        yield from _model(model, ram_total_bytes)


def _model(model: ModelRun, ram_total_bytes: int | None) -> Iterator[str]:
    title = tr("Demo model") if model.is_demo else tr("One of your models")
    where = f", {tr('on the CPU')}" if model.on_cpu else ""
    yield f"### {title}{where}"
    yield ""
    yield ", ".join(filter(None, (model.architecture, model.quant, show_bytes(model.file_bytes))))
    yield ""
    if model.load_s is not None:
        yield tr("Loaded in {0}: {1}.", show_duration(model.load_s), model.plan)
    yield ""
    yield from _answers(model)
    yield from _speeds(model)
    yield from _memory(model)
    yield from _readings(model.readings, ram_total_bytes)
    yield from _after(model)
    yield from _problems(model.problems)


def _answers(model: ModelRun) -> Iterator[str]:
    rows = [
        (
            each.question,
            _yes_or_no(each.is_expected),
            _same_as_on_cpu(each.is_as_on_cpu, is_reference=model.is_demo and model.on_cpu),
            show_duration(each.seconds),
            " ".join(each.answer.replace("|", "\\|").split()) or "-",
        )
        for each in model.answers
    ]
    yield from _table((tr("question"), tr("as expected"), tr("same as on the CPU"), tr("time"), tr("answer")), rows)


def _speeds(model: ModelRun) -> Iterator[str]:
    rows = model.record.rows if model.record is not None else ()
    yield from _table((tr("test"), tr("tok/s")), [(row.name, f"{row.median:.1f}") for row in rows])


def _memory(model: ModelRun) -> Iterator[str]:
    rows = [
        (each.device, each.part, _mib(each.planned_bytes), _mib(each.dry_run_bytes), _mib(each.allocated_bytes))
        for each in model.memory
    ]
    header = (tr("device"), tr("part"), tr("planned, MiB"), tr("dry run, MiB"), tr("allocated, MiB"))
    yield from _table(header, rows)


def _readings(readings: Sequence[MemoryReading], ram_total_bytes: int | None) -> Iterator[str]:
    rows = [
        (
            reading.moment,
            tr("RAM"),
            _mib(reading.worker_ram_bytes),
            "-",
            _mib(_used(ram_total_bytes, reading.ram_available_bytes)),
            "-",
        )
        for reading in readings
    ]
    rows += [
        (
            reading.moment,
            gpu.name,
            _mib(gpu.worker_dedicated_bytes),
            _mib(gpu.worker_shared_bytes),
            _mib(gpu.used_bytes),
            _mib(gpu.nvidia_smi_used_bytes),
        )
        for reading in readings
        for gpu in reading.gpus
    ]
    header = (
        tr("moment"), tr("memory"), tr("engine, MiB"), tr("engine, shared, MiB"), tr("all programs, MiB"),
        "nvidia-smi, MiB",
    )  # fmt: skip
    yield from _table(header, rows)


def _after(model: ModelRun) -> Iterator[str]:
    for sign in model.spill:
        excess = show_bytes(sign.excess_bytes)
        yield f"- {tr('Spill on {0}: {1}, at most {2} beyond the baseline', sign.device, sign.state, excess)}"
    for freed in model.freed:
        before, after = show_bytes(freed.free_before_bytes), show_bytes(freed.free_after_bytes)
        yield f"- {tr('{0}: {1} free before the load, {2} after the unload', freed.device, before, after)}"
    if model.worker_has_exited is not None:
        yield f"- {tr('The engine process exited: {0}', _yes_or_no(model.worker_has_exited))}"
    if model.spill or model.freed or model.worker_has_exited is not None:
        yield ""


def _problems(problems: Sequence[str]) -> Iterator[str]:
    if problems:
        yield tr("Not measured:")
        yield ""
        yield from (f"- {problem}" for problem in problems)
        yield ""


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if rows:
        # Columns are aligned, because the page is also read as plain text; a long answer may stand out at the end.
        widths = [min(max(map(len, column)), _WIDEST) for column in zip(header, *rows, strict=True)]
        yield _table_line(header, widths)
        yield "|-" + "-|-".join("-" * width for width in widths) + "-|"
        yield from (_table_line(row, widths) for row in rows)
        yield ""


def _table_line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return f"| {' | '.join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))} |"


def _same_as_on_cpu(is_same: bool | None, *, is_reference: bool) -> str:
    if is_same is None:
        return tr("reference") if is_reference else "-"
    return _yes_or_no(is_same)


def _yes_or_no(value: bool) -> str:
    return tr("yes") if value else tr("no")


def _used(total_bytes: int | None, available_bytes: int | None) -> int | None:
    return None if total_bytes is None or available_bytes is None else total_bytes - available_bytes


def _mib(n_bytes: int | None) -> str:
    return "-" if n_bytes is None else f"{n_bytes / MIB:.1f}"


def make_report_folder(folder: Path) -> None:
    """Create the folder if it doesn't exist. Raises QwenDeskError."""
    try:
        make_folder(folder)
    except OSError as error:
        raise _not_saved(folder, error) from error


def save_report(report: PcTrialReport, folder: Path) -> tuple[Path, Path]:
    """Write the JSON file and the page, and return their paths. Existing reports stay. Raises QwenDeskError."""
    try:
        path = _free_path(folder, f"qwendesk-trial-{report.date}")
        page = path.with_suffix(".md")
        write_whole(path, to_json(report))
        write_whole(page, report_page(report).encode())
    except OSError as error:
        raise _not_saved(folder, error) from error
    return path, page


def _free_path(folder: Path, name: str) -> Path:
    """Return the path of a JSON file that doesn't exist, nor its page: with a number if needed."""
    number = 1
    while True:
        path = folder / (f"{name}.json" if number == 1 else f"{name}-{number}.json")
        if not path.exists() and not path.with_suffix(".md").exists():
            return path
        number += 1


def _not_saved(folder: Path, error: OSError) -> QwenDeskError:
    sentence = tr("{0} could not be written: {1}. Choose another folder.", folder, error.strerror or error)
    return QwenDeskError(tr("Report not saved"), sentence)
