"""Turns reports of `qwendesk trial` into the tables of docs/measurements.md.

    python -m tools.trial_report FILE...

Prints Markdown. A file that is broken or no such report is refused with a sentence, and the exit status is then 1. The
reports come from strangers, so their texts are shortened and can't add markup of their own.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from qwendesk.bench.pc_report import MAX_FILE_BYTES, BadReport, EngineRun, ModelRun, PcTrialReport, from_json
from qwendesk.core.input_files import read_bounded
from qwendesk.core.units import MIB, show_bytes

_LONGEST_TEXT = 160
_MARKUP = str.maketrans({"|": "\\|", "<": "&lt;", "[": "\\[", "`": "'", "*": "\\*", "_": "\\_"})


class Measured(msgspec.Struct, frozen=True):
    """One model on one engine of one PC."""

    pc: str
    engine: EngineRun
    model: ModelRun

    @property
    def cells(self) -> tuple[str, str, str]:
        """The first columns of a table: PC, engine and model."""
        where = " (CPU only)" if self.model.on_cpu and self.engine.backend != "cpu" else ""
        name = "demo" if self.model.is_demo else f"{self.model.architecture} {self.model.quant}"
        return self.pc, clean(self.engine.name) + where, f"{clean(name)}, {show_bytes(self.model.file_bytes)}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="the JSON files of `qwendesk trial`")
    reports, refusals = read_reports(parser.parse_args(arguments).files)
    for sentence in refusals:
        print(sentence, file=sys.stderr)
    if reports:
        print(tables(reports), end="")
    return 1 if refusals else 0


def read_reports(files: Sequence[Path]) -> tuple[list[PcTrialReport], list[str]]:
    """Return the reports, each once, and a sentence for every file that is refused."""
    reports: list[PcTrialReport] = []
    refusals = []
    for path in files:
        try:
            report = from_json(read_bounded(path, MAX_FILE_BYTES))
        except BadReport as error:
            refusals.append(f"{path} is refused. {error}")
        except OSError as error:
            refusals.append(f"{path} can't be read: {error.strerror or error}.")
        else:
            if report not in reports:
                reports.append(report)
    return reports, refusals


def tables(reports: Sequence[PcTrialReport]) -> str:
    """Return all tables as Markdown."""
    named = [(f"PC {number}", report) for number, report in enumerate(reports, 1)]
    runs = [Measured(pc, engine, model) for pc, report in named for engine in report.engines for model in engine.models]
    first = ("PC", "engine", "model")
    sections = (
        ("PCs", ("PC", "date", "QwenDesk", "system", "RAM", "CPU and GPUs", "engines"), list(_pcs(named))),
        ("Answers", (*first, "as expected", "same as on the CPU", "picture"), list(_answers(runs))),
        (
            "Plan and allocation",
            (*first, "device", "planned, MiB", "dry run, MiB", "allocated, MiB", "plan off", "worst part"),
            list(_memory(runs)),
        ),
        (
            "Speed",
            (*first, "plan", "test", "tok/s"),
            list(_speeds(runs)),
        ),
        (
            "Meter",
            (*first, "GPU", "engine by meter, MiB", "engine allocated, MiB", "all by meter, MiB", "nvidia-smi, MiB"),
            list(_meter(runs)),
        ),
        (
            "Spill and unload",
            (*first, "device", "spill", "free before, MiB", "free after, MiB", "process exited"),
            list(_after(runs)),
        ),
        ("Not measured", ("PC", "what"), list(_problems(named))),
    )
    return "\n".join(_table(title, header, rows) for title, header, rows in sections if rows)


def clean(text: str) -> str:
    """Return a stranger's text as one short line without markup."""
    line = " ".join(text.split())
    return (line if len(line) <= _LONGEST_TEXT else line[: _LONGEST_TEXT - 1] + "…").translate(_MARKUP)


def _pcs(named: Sequence[tuple[str, PcTrialReport]]) -> Iterator[tuple[str, ...]]:
    for pc, report in named:
        engines = (each.name if each.is_usable else f"{each.name}: {each.reason}" for each in report.engines)
        devices = [device for engine in report.engines for device in engine.devices]
        cpus = [device.description for device in devices if device.kind == "cpu"]
        gpus = report.gpus or [device.description for device in devices if device.kind != "cpu"]
        yield (
            pc,
            clean(report.date) + (" (stopped early)" if report.was_stopped else ""),
            clean(report.versions.get("qwendesk", "?")),
            clean(report.versions.get("system", "?")),
            "-" if report.ram_total_bytes is None else show_bytes(report.ram_total_bytes),
            clean("; ".join(dict.fromkeys([*cpus, *gpus]))) or "-",
            "<br>".join(clean(each) for each in engines) or "-",
        )


def _answers(runs: Sequence[Measured]) -> Iterator[tuple[str, ...]]:
    for run in runs:
        answers = run.model.answers
        if not answers:
            continue
        compared = [each.is_as_on_cpu for each in answers if each.is_as_on_cpu is not None]
        picture = next((each for each in answers if each.has_picture), None)
        same = "reference" if run.model.is_demo and run.model.on_cpu else "-"
        yield (
            *run.cells,
            f"{sum(each.is_expected for each in answers)} of {len(answers)}",
            f"{sum(compared)} of {len(compared)}" if compared else same,
            "-" if picture is None else f"{'right' if picture.is_expected else 'wrong'}, {picture.seconds:.1f} s",
        )


def _memory(runs: Sequence[Measured]) -> Iterator[tuple[str, ...]]:
    for run in runs:
        for device in dict.fromkeys(row.device for row in run.model.memory):
            rows = [row for row in run.model.memory if row.device == device]
            planned = sum(row.planned_bytes for row in rows)
            allocated = sum(row.allocated_bytes for row in rows)
            dry_run = [row.dry_run_bytes for row in rows if row.dry_run_bytes is not None]
            worst = max(rows, key=lambda row: abs(row.planned_bytes - row.allocated_bytes))
            yield (
                *run.cells,
                clean(device),
                _mib(planned),
                _mib(sum(dry_run)) if dry_run else "-",
                _mib(allocated),
                _off(planned, allocated),
                f"{worst.part} {_off(worst.planned_bytes, worst.allocated_bytes)}",
            )


def _speeds(runs: Sequence[Measured]) -> Iterator[tuple[str, ...]]:
    for run in runs:
        for row in run.model.record.rows if run.model.record is not None else ():
            yield *run.cells, clean(run.model.plan), clean(row.name), f"{row.median:.1f}"


def _meter(runs: Sequence[Measured]) -> Iterator[tuple[str, ...]]:
    for run in runs:
        rows = [row for row in run.model.memory if row.device != "CPU"]
        loaded = next((each for each in run.model.readings if each.moment == "loaded"), None)
        for gpu in loaded.gpus if loaded is not None else ():
            yield (
                *run.cells,
                clean(f"{gpu.name} {gpu.driver}"),
                _mib(gpu.worker_dedicated_bytes),
                _mib(sum(row.allocated_bytes for row in rows)),
                _mib(gpu.used_bytes),
                _mib(gpu.nvidia_smi_used_bytes),
            )


def _after(runs: Sequence[Measured]) -> Iterator[tuple[str, ...]]:
    for run in runs:
        spill = {sign.device: f"{sign.state}, {_mib(sign.excess_bytes)} MiB" for sign in run.model.spill}
        exited = {None: "-", True: "yes", False: "no"}[run.model.worker_has_exited]
        for freed in run.model.freed:
            yield (
                *run.cells,
                clean(freed.device),
                clean(spill.get(freed.device, "-")),
                _mib(freed.free_before_bytes),
                _mib(freed.free_after_bytes),
                exited,
            )


def _problems(named: Sequence[tuple[str, PcTrialReport]]) -> Iterator[tuple[str, ...]]:
    for pc, report in named:
        models = (model for engine in report.engines for model in engine.models)
        sentences = [*report.problems, *(problem for model in models for problem in model.problems)]
        yield from ((pc, clean(sentence)) for sentence in sentences)


def _table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"### {title}", "", f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows), ""])


def _off(planned: int, allocated: int) -> str:
    return f"{planned / allocated - 1:+.1%}" if allocated else "-"


def _mib(n_bytes: int | None) -> str:
    return "-" if n_bytes is None else f"{n_bytes / MIB:.1f}"


if __name__ == "__main__":
    sys.exit(main())
