"""Writes what follows from the planner and the catalog into the guide, in each language: tables, and numbers.

    python tools/guide_pcs.py

Each row of a table is what `qwendesk plan` says for a made-up PC, a model of the catalog and a vision file.
"""

import argparse
import functools
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parent.parent
if __package__ in (None, ""):
    sys.path.insert(0, str(ROOT))

from qwendesk.cli.made_up_pc import add_made_up_pc_options, made_up_machine  # noqa: E402
from qwendesk.core.options import LoadOptions  # noqa: E402
from qwendesk.core.paths import guide_folder  # noqa: E402
from qwendesk.core.plan import Plan  # noqa: E402
from qwendesk.core.units import GIB, show_expected, show_tokens  # noqa: E402
from qwendesk.hardware.planner import best_plan  # noqa: E402
from qwendesk.hub.catalog import load_catalog  # noqa: E402
from tools.guide_numbers import phrases_of  # noqa: E402
from tools.guide_tables import cards_for_guide, catalog_facts, mmproj_facts  # noqa: E402


class Row(msgspec.Struct, frozen=True):
    """A made-up PC, and the file that is planned for it."""

    gpus: tuple[str, ...]
    """As `--gpu` takes them; empty for a PC whose GPU uses the RAM."""
    ram_gb: int
    model: str
    quant: str
    backend: str = "cuda"
    n_ctx: int = 0
    """0 leaves the context to the planner."""
    chip: str = ""
    """The GPU that uses the RAM, as its driver names it."""


_35B, _27B, _122B = "Qwen3.5-35B-A3B", "Qwen3.8-27B", "Qwen3.5-122B-A10B"
_FLASH = "Qwen3.8-Flash-Next"
_3090 = "RTX 3090:24"

SEVERAL_CARDS = (
    Row(("RTX 3090:24", "RTX 3060:12"), 64, _35B, "Q6_K"),
    Row(("RTX 3090:24", "RTX 3060:12"), 64, _35B, "Q8_0"),
    Row(("RTX 5070 Ti:16", "RTX 5060 Ti:16"), 64, _35B, "UD-Q5_K_XL"),
    Row(("RTX 3060:12", "RTX 3060:12"), 32, _27B, "UD-Q4_K_XL"),
    Row((_3090,) * 2, 64, _27B, "Q8_0"),
    Row((_3090,) * 2, 64, _122B, "Q4_K_M"),
    Row((_3090,) * 3, 64, _122B, "Q4_K_M"),
    Row((_3090,) * 4, 128, _122B, "Q4_K_M"),
)
OTHER_MODELS = (
    Row(("RTX 3060:12",), 32, "Qwen3.5-9B", "Q8_0"),
    Row(("RTX 3060:12",), 32, _27B, "UD-Q2_K_XL", n_ctx=16_384),
    Row(("RTX 4060 Ti:16",), 32, _27B, "UD-Q3_K_XL"),
    Row((_3090,), 64, _27B, "UD-Q4_K_XL"),
    Row(("RTX 5090:32",), 64, _27B, "UD-Q6_K"),
    Row(("RTX 5080:16",), 128, _35B, "Q8_0"),
    Row((_3090,), 128, _122B, "Q4_K_M"),
    Row((_3090,), 64, _FLASH, "UD-IQ4_XS"),
    Row((_3090,), 128, _FLASH, "UD-Q4_K_XL"),
)
_METAL_SHARE = (2 / 3, 3 / 4)
"""What Metal lets a GPU use of the memory, below 36 GB and from there on, by reports of its working set."""
BENCHMARKS = ("GPQA Diamond", "LiveCodeBench v6", "SWE-bench Verified", "Intelligence Index")
COMPARED = (
    _35B, "Qwen3.6-35B-A3B", "Qwen3.5-27B", "Qwen3.6-27B", _27B, _FLASH, _122B, "Qwen3.5-9B",
    "Qwen3.5-4B",
)  # fmt: skip
MACS = tuple(
    Row((), ram_gb, model, quant, "metal", chip=f"Apple {chip}")
    for chip, ram_gb, model, quant in (
        ("M4", 16, "Qwen3.5-9B", "IQ4_XS"),
        ("M4", 16, "Qwen3.5-4B", "Q8_0"),
        ("M4", 24, "Qwen3.5-9B", "Q8_0"),
        ("M4", 32, _35B, "UD-Q3_K_XL"),
        ("M4 Pro", 48, _35B, "Q6_K"),
        ("M4 Max", 64, _35B, "Q8_0"),
        ("M4 Max", 64, _27B, "Q8_0"),
        ("M4 Max", 64, _122B, "UD-IQ2_M"),
        ("M3 Ultra", 96, _122B, "UD-Q3_K_XL"),
        ("M4 Max", 128, _122B, "Q4_K_M"),
        ("M4 Max", 128, _FLASH, "UD-Q4_K_XL"),
    )
)
_STRIX_HALO = "Radeon 8060S"
AMD = (
    Row(("RX 9060 XT:16",), 32, _35B, "Q4_K_M", "vulkan"),
    Row(("RX 7800 XT:16",), 32, _35B, "Q4_K_M", "vulkan"),
    Row(("RX 7900 XTX:24",), 64, _35B, "UD-Q4_K_L", "vulkan"),
    Row(("RX 7900 XTX:24",), 64, _27B, "UD-Q4_K_XL", "vulkan"),
    Row(("Radeon AI PRO R9700:32",), 64, _35B, "Q6_K", "vulkan"),
    Row(("Arc B580:12",), 32, _35B, "Q4_K_M", "vulkan"),
    Row((), 128, _35B, "Q8_0", "vulkan", chip=_STRIX_HALO),
    Row((), 128, _122B, "Q4_K_M", "vulkan", chip=_STRIX_HALO),
    Row((), 128, _FLASH, "UD-Q4_K_XL", "vulkan", chip=_STRIX_HALO),
)


def main() -> None:
    for path in sorted(guide_folder().glob("*.md")):
        for table in tables_of(path.stem):
            for language, page in _translations(path):
                _write(page, translated(table, language))
        for phrase in phrases_of(path.stem):
            for language, page in _translations(path):
                text = phrase.write_into(page.read_text(encoding="utf-8"), language)
                page.write_text(text, encoding="utf-8", newline="\n")


def _translations(path: Path) -> Iterator[tuple[str, Path]]:
    """Yield the languages that have this page of the guide, English first, and its file in each."""
    yield "en", path
    for language in _WORDS:
        if (page := guide_folder() / language / path.name).is_file():
            yield language, page


def _write(path: Path, table: str) -> None:
    """Replace the table that has the same head."""
    head = re.escape(table.partition("\n")[0])
    text = path.read_text(encoding="utf-8")
    changed, count = re.subn(rf"^{head}\n(?:\|.*\n)+", lambda _: f"{table}\n", text, flags=re.MULTILINE)
    if count != 1:
        raise ValueError(f"{path} has {count} tables that begin with {head}")
    path.write_text(changed, encoding="utf-8", newline="\n")


@functools.cache
def tables_of(page: str) -> tuple[str, ...]:
    """Return the tables of a page of the guide; none for most pages."""
    if page == "several-cards":
        return (several_cards_table(),)
    if page == "which-model":
        return advice_table(), benchmarks_table(), cards_for_guide(), one_gpu_table(OTHER_MODELS)
    rows = {"macs": MACS, "amd-intel": AMD}.get(page)
    return (one_gpu_table(rows),) if rows else ()


_GERMAN = {
    r"(?<=\| )(\d+)\.(\d+)(?= \|)": r"\1,\2",
    r"cards \+ RAM": "Karten + RAM",
    r"card \+ RAM": "Karte + RAM",
    r"\| PC \| model \| in RAM \|": "| PC | Modell | im RAM |",
    r"\| model \| layers \| experts in RAM \| context \|": "| Modell | Schichten | Experten im RAM | Kontext |",
    r"\| context \| estimated tok/s \|": "| Kontext | geschätzte Token/s |",
    "experts of": "Experten von",
    " layers": " Schichten",
    r"\| pictures \|": "| Bilder |",
    r", pictures \|": ", Bilder |",
    "doesn't fit": "passt nicht",
    r"\| quant \|": "| Quant |",
    r"\| PC \| fast \| deep \| best quality \|": "| PC | schnell | gründlich | beste Qualität |",
    "CPU alone": "nur CPU",
    r"\| model \| GPQA": "| Modell | GPQA",
    "with pictures": "mit Bildern",
    "text only": "nur Text",
    "on CPU": "auf der CPU",
}
_CHINESE = {
    r"card \+ RAM": "显卡 + 内存",
    r"\| PC \| model \| in RAM \|": "| 电脑 | 模型 | 内存中 |",
    r"\| context \| estimated tok/s \|": "| 上下文 | 估算 tok/s |",
    r"experts of (\d+) layers": r"\1 层的专家",
    r"\| pictures \|": "| 图片 |",
    r"\| quant \|": "| 量化 |",
    r"\| PC \| fast \| deep \| best quality \|": "| 电脑 | 快速 | 深入 | 最佳质量 |",
    "CPU alone": "只用 CPU",
    "Laptop, ": "笔记本，",
    r"\| model \| GPQA": "| 模型 | GPQA",
    "with pictures": "含图片",
    "text only": "纯文本",
    r"(\d+) on CPU, ": r"CPU 上 \1 层，",
}
_WORDS = {"de": _GERMAN, "zh_Hans": _CHINESE}
"""What stands for each pattern in the tables of a language."""


def translated(table: str, language: str) -> str:
    """Return a table of the guide in a language that the guide has."""
    for english, theirs in _WORDS.get(language, {}).items():
        table = re.sub(english, theirs, table)
    return table


def advice_table() -> str:
    """Return what `qwendesk recommend` takes for each PC and purpose of tests/data/expected_advice.json."""
    advice = json.loads((ROOT / "tests/data/expected_advice.json").read_text(encoding="utf-8"))
    taken = {
        (row["pc"], row["purpose"]): f"{row['model'].removeprefix('Qwen')} {row['quant']}" for row in advice["rows"]
    }
    rows = []
    for pc in advice["pcs"]:
        files = [taken.get((pc["name"], purpose), "") for purpose in ("fast", "deep", "quality")]
        if any(files):
            rows.append((pc["name"] + (f" + {pc['ram']} GB" if pc["ram"] else ""), *files))
    return _table(("PC", "fast", "deep", "best quality"), rows)


def benchmarks_table() -> str:
    """Return what is published of the models that people choose between, from the catalog."""
    scores = {
        (each.model, each.name): f"{each.score:.0f}" if each.is_independent else f"{each.score:.1f}"
        for each in load_catalog().contents.benchmarks
    }
    rows = [(model, *(scores.get((model, name), "-") for name in BENCHMARKS)) for model in COMPARED]
    return _table(("model", *BENCHMARKS), rows)


def several_cards_table() -> str:
    """Return how the layers of a model are dealt over several cards."""
    rows = []
    for row in SEVERAL_CARDS:
        plan = planned(row)
        layers = " + ".join(str(gpu.layers) for gpu in plan.memory.gpus)
        in_ram = " + ".join(str(gpu.cpu_expert_layers) for gpu in plan.memory.gpus)
        rows.append((_pc(row), _file(row), layers, in_ram if plan.options.n_cpu_moe else "-", _context(plan)))
    return _table(("cards + RAM", "model", "layers", "experts in RAM", "context"), rows)


def planned(row: Row) -> Plan:
    """Return the plan of `qwendesk plan` for this row, with 1 GB reserved."""
    parser = argparse.ArgumentParser()
    add_made_up_pc_options(parser)
    memory = [f"--ram={row.ram_gb}"] if row.gpus else [f"--unified={row.ram_gb}"]
    options = parser.parse_args([*(f"--gpu={gpu}" for gpu in row.gpus), *memory, f"--backend={row.backend}"])
    values: dict[str, Any] = {"n_ctx": row.n_ctx} if row.n_ctx else {}
    machine = msgspec.structs.replace(made_up_machine(options, GIB), physical_cores=8)
    if row.chip:
        limit = round(row.ram_gb * _METAL_SHARE[row.ram_gb >= 36] * GIB) if row.backend == "metal" else row.ram_gb * GIB
        gpu = msgspec.structs.replace(machine.devices[0], description=row.chip, total_bytes=limit, free_bytes=limit)
        machine = msgspec.structs.replace(machine, devices=(gpu,))
    return best_plan(
        catalog_facts(row.model, row.quant), mmproj_facts(), machine, LoadOptions(model="m.gguf", **values)
    )


def one_gpu_table(rows: Sequence[Row]) -> str:
    """Return what fits on PCs with one GPU."""
    lines = []
    for row in rows:
        plan = planned(row)
        lines.append((_pc(row), _file(row), _place(plan), _context(plan), _speed(plan)))
    return _table(("PC", "model", "in RAM", "context", "estimated tok/s"), lines)


def _pc(row: Row) -> str:
    names = [gpu.replace(":", " ") + " GB" for gpu in row.gpus]
    if row.chip:
        return f"{row.chip.removeprefix('Apple ')}, {row.ram_gb} GB"
    cards = f"{len(names)} x {names[0]}" if len(set(names)) == 1 and len(names) > 1 else ", ".join(names)
    return f"{cards} + {row.ram_gb} GB"


def _file(row: Row) -> str:
    return f"{row.model.removeprefix('Qwen')} {row.quant}"


def _place(plan: Plan) -> str:
    if not plan.fits:
        return "doesn't fit"
    texts = []
    if plan.memory.cpu_expert_layers:
        texts.append(f"experts of {plan.memory.cpu_expert_layers} layers")
    if plan.kind == "layers_in_ram":
        texts.append(f"{plan.memory.ram.layers} layers")
    if plan.kind in ("cpu", "disk"):
        texts.append("all")
    if plan.memory.gpus and plan.options.vision == "cpu":
        texts.append("pictures")
    return ", ".join(texts) or "-"


def _context(plan: Plan) -> str:
    return f"{show_tokens(plan.options.n_ctx)} {plan.options.type_k}" if plan.fits else "doesn't fit"


def _speed(plan: Plan) -> str:
    return show_expected(plan.speed.start) if plan.fits and plan.speed is not None else "-"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(line)} |" for line in (heads, *rows)]
    return "\n".join((lines[0], "|---" * len(heads) + "|", *lines[1:]))


if __name__ == "__main__":
    main()
