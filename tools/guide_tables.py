"""Prints the tables of docs/measurements.md that follow from the planner: cards beside collected advice, and accuracy.

    python tools/guide_tables.py            # for docs/measurements.md
    python tools/guide_tables.py --advice   # what is expected to be recommended, for docs/measurements.md

They are computed from the sizes of the published files (resources/catalog.json) and the planner's own rules.
"""

import functools
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
if __package__ in (None, ""):
    sys.path.insert(0, str(ROOT))

from qwendesk.core.devices import DeviceInfo  # noqa: E402
from qwendesk.core.model_facts import ModelFacts, TensorFacts  # noqa: E402
from qwendesk.core.options import LoadOptions  # noqa: E402
from qwendesk.core.plan import MachineMemory, Plan  # noqa: E402
from qwendesk.core.units import GIB, MIB, show_tokens  # noqa: E402
from qwendesk.hardware.estimated_facts import dimensions_of, estimate_facts  # noqa: E402
from qwendesk.hardware.memory_estimate import memory_use  # noqa: E402
from qwendesk.hardware.planner import best_plan  # noqa: E402
from qwendesk.hub.catalog import load_catalog  # noqa: E402
from qwendesk.hub.gguf import read_facts  # noqa: E402
from tools.hollow_model import write_hollow  # noqa: E402

_MODEL = "Qwen3.5-35B-A3B"
_MMPROJ_BYTES = 900_000_000
_SYSTEM_RAM = 3 * GIB
_CARDS: tuple[tuple[float, float, str, str, str, dict[str, Any]], ...] = (
    (8, 32, "Q4_K_M", "about 36 of 40 expert layers on CPU, 32K", "about 33", {"n_ctx": 32_768}),
    (12, 32, "Q4_K_M", "about 28 expert layers on CPU, 64K", "about 24", {}),
    (12, 16, "UD-IQ3_XXS", "about 17 on CPU", "about 13", {"n_ctx": 32_768}),
    (16, 32, "Q4_K_M", "about 19-20 on CPU, 64K q8_0", "about 15", {}),
    (24, 64, "UD-Q4_K_L", "at 128K q8_0 (21.7 + 0.6)", "", {"n_ctx": 131_072}),
    (24, 64, "Q4_K_M", "a few expert layers on CPU", "64K q8_0 (21.5 + 0.6)", {"n_ctx": 65_536}),
    (24, 64, "UD-Q3_K_XL", "full 262K (19.7 + 0.6)", "", {"n_ctx": 262_144}),
    (24, 64, "UD-Q4_K_L", "", "full 262K (21.8 + 0.6)", {"n_ctx": 262_144}),
    (32, 64, "Q5_K_M", "at 128K (27.3 + 0.6)", "", {"n_ctx": 131_072}),
    (32, 64, "Q6_K", "", "at 128K (28.6 + 0.6)", {"n_ctx": 131_072}),
    (48, 64, "Q8_0", "fits", "fits", {}),
)


def main() -> None:
    if "--advice" in sys.argv[1:]:
        print(expected_advice())
        return
    print("| card + RAM | quant | collected, with pictures | planned | collected, text only | planned |")
    print("|---|---|---|---|---|---|")
    for gib, ram, quant, with_pictures, text_only, values in _CARDS:
        pictures = _plan(quant, gib, ram, values, mmproj=mmproj_facts())
        text = _plan(quant, gib, ram, values, mmproj=None)
        print(
            f"| {gib:.0f} + {ram:.0f} GB | {quant} | {with_pictures or '-'} | {_words(pictures)} | "
            f"{text_only or '-'} | {_words(text)} |"
        )
    print()
    _accuracy()


def cards_for_guide() -> str:
    """The short table for people who choose a model: what is planned for each card and RAM."""
    lines = ["| card + RAM | quant | with pictures | text only |", "|---|---|---|---|"]
    for gib, ram, quant, _, _, values in _CARDS:
        plans = (_plan(quant, gib, ram, values, mmproj=mmproj) for mmproj in (mmproj_facts(), None))
        words = (_words(plan).rpartition(" (")[0] or _words(plan) for plan in plans)
        lines.append(f"| {gib:.0f} + {ram:.0f} GB | {quant} | {' | '.join(words)} |")
    return "\n".join(lines)


def expected_advice() -> str:
    """The table of what `qwendesk recommend` and `plan` are expected to choose (tests/data/expected_advice.json)."""
    advice = json.loads((ROOT / "tests/data/expected_advice.json").read_text(encoding="utf-8"))
    rams = {pc["name"]: pc["ram"] for pc in advice["pcs"]}
    lines = ["| PC | for | model | quant | split | on CPU | context | source |", "|---|---|---|---|---|---|---|---|"]
    for row in advice["rows"]:
        ram = f" + {rams[row['pc']]} GB RAM" if rams[row["pc"]] else ""
        split = ",".join(map(str, row["split"])) or "-"
        where = f"{row['pc']}{ram} | {row['purpose']}"
        what = f"{row['model']} | {row['quant']} | {split} | {row['n_cpu_moe']} | {show_tokens(row['n_ctx'])}"
        lines.append(f"| {where} | {what} | {row['source']} |")
    return "\n".join(lines)


def _plan(quant: str, gib: float, ram: float, values: dict[str, Any], mmproj: ModelFacts | None) -> Plan:
    memory = int(gib * GIB)
    card = DeviceInfo("CUDA0", f"{gib:.0f} GB card", "gpu", "CUDA", memory, memory)
    available = int(ram * GIB) - _SYSTEM_RAM
    machine = MachineMemory(devices=(card,), ram_total_bytes=int(ram * GIB), ram_available_bytes=available)
    return best_plan(catalog_facts(_MODEL, quant), mmproj, machine, LoadOptions(model="m.gguf", **values))


def catalog_facts(model: str, quant: str) -> ModelFacts:
    """Return what follows from the catalog about Unsloth's file of a model."""
    catalog = load_catalog()
    repository, entry = catalog.repository(f"unsloth/{model}-GGUF"), catalog.model(model)
    assert repository is not None
    assert entry is not None
    file = next(file for file in repository.files if (file.kind, file.quant) == ("model", quant))
    assert file.n_bytes is not None
    dimensions = dimensions_of(entry.hyperparameters, entry.params_b)
    return estimate_facts(dimensions, entry.architecture, file.n_bytes, quant=quant)


def mmproj_facts() -> ModelFacts:
    tensor = TensorFacts("v.patch_embd.weight", "F16", (_MMPROJ_BYTES // 2,), _MMPROJ_BYTES)
    return ModelFacts(
        path="", file_bytes=_MMPROJ_BYTES, kind="mmproj", architecture="clip", embedding_length=1152, tensors=(tensor,)
    )


def _words(plan: Plan) -> str:
    if not plan.fits:
        return "does not fit"
    options, card = plan.options, plan.memory.gpus[0]
    where = f"{options.n_cpu_moe} on CPU, " if options.n_cpu_moe else ""
    used = (card.total_bytes - card.other_bytes) / GIB
    return f"{where}{show_tokens(options.n_ctx)} {options.type_k} ({used:.1f} + {card.other_bytes / GIB:.1f})"


def _accuracy() -> None:
    """How far the formulas are from what the engine itself planned (tests/data/engine_memory.json)."""
    rows = json.loads((ROOT / "tests/data/engine_memory.json").read_text())["rows"]
    off: dict[str, list[float]] = {}
    for row in rows:
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in row["options"].items()
        }
        cards = tuple(
            DeviceInfo(f"GPU{number}", "", "gpu", "X", int(gib * GIB), int(gib * GIB))
            for number, gib in enumerate(row["cards_gib"])
        )
        machine = MachineMemory(devices=cards, ram_total_bytes=512 * GIB, ram_available_bytes=512 * GIB)
        memory = memory_use(_hollow_facts(row["size"]), LoadOptions(model="m.gguf", **values), machine)
        for device in (*memory.gpus, memory.ram):
            real = row["mib"].get(device.name, [0, 0, 0, 0])[3]
            if real >= 32:
                off.setdefault(_placement(row), []).append(device.compute_bytes / MIB / real - 1)
    print("| compute buffers | devices | median off | worst |")
    print("|---|---|---|---|")
    for placement, shares in sorted(off.items()):
        middle = sorted(abs(share) for share in shares)[len(shares) // 2]
        print(f"| {placement} | {len(shares)} | {middle:.1%} | {max(shares, key=abs):+.0%} |")


@functools.cache
def _hollow_facts(size: str) -> ModelFacts:
    with tempfile.TemporaryDirectory() as folder:
        return read_facts(write_hollow(Path(folder) / "hollow.gguf", size))


def _placement(row: dict[str, Any]) -> str:
    options = row["options"]
    if not row["cards_gib"]:
        return "RAM alone"
    if len(row["cards_gib"]) > 1:
        return "several cards"
    if options["n_gpu_layers"] != "all":
        return "whole layers in RAM"
    return "experts in RAM" if options["n_cpu_moe"] else "all on the card"


if __name__ == "__main__":
    main()
