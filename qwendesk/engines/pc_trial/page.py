"""The report as a Markdown page, which the user reads before the report is kept."""

from collections.abc import Iterator, Sequence

from qwendesk.core.translation import tr
from qwendesk.core.units import MIB, show_bytes, show_duration
from qwendesk.engines.pc_trial.report import EngineRun, MemoryReading, ModelRun, PcTrialReport

_VERSIONS = (
    ("qwendesk", "QwenDesk"),
    ("system", "System"),
    ("python", "Python"),
    ("llama-cpp-python", "llama-cpp-python"),
)
"""The versions that the page shows, each with its name."""

_WIDEST = 30
"""Characters to which the columns of a table are aligned at most."""


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
        yield tr(
            "Loaded in {0}: {1}, context {2}, GPU layers {3}, expert layers on CPU {4}, cache {5}.",
            show_duration(model.load_s), model.plan_kind, model.n_ctx, model.n_gpu_layers, model.n_cpu_moe,
            model.kv_type,
        )  # fmt: skip
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
    rows = [
        (str(each.prompt_tokens), _number(each.prefill_tok_s), str(each.generated_tokens), _number(each.decode_tok_s))
        for each in model.speeds
    ]
    yield from _table(
        (tr("prompt tokens"), tr("prompt processing, tok/s"), tr("generated tokens"), tr("generation, tok/s")), rows
    )


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


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _used(total_bytes: int | None, available_bytes: int | None) -> int | None:
    return None if total_bytes is None or available_bytes is None else total_bytes - available_bytes


def _mib(n_bytes: int | None) -> str:
    return "-" if n_bytes is None else f"{n_bytes / MIB:.1f}"
