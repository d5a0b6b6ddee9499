"""Compares the speed estimator with the user reports of the catalog: `python -m bench.speeds`.

Each report is planned as the app would plan it on that PC, with the placement of the report where it is stated. The
estimate is the middle (geometric mean) of the estimated range at the report's depth. The estimator sees no report.
"""

import math
import statistics
import sys
from collections.abc import Sequence

import msgspec

from qwendesk.core.devices import DeviceInfo, DeviceKind
from qwendesk.core.model_facts import Hyperparameters, ModelFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import MachineMemory, Plan
from qwendesk.core.units import GIB
from qwendesk.hardware.estimated_facts import dimensions_of, estimate_facts
from qwendesk.hardware.gpu_cards import find_card, ram_bandwidth
from qwendesk.hardware.planner import best_plan, fixed_plan
from qwendesk.hardware.speed_estimate import speed_at
from qwendesk.hub.catalog import Catalog, load_catalog
from qwendesk.hub.catalog_schema import SpeedReport
from qwendesk.models.fit import Pc, estimate_model, machine_memory

CLOSE, FAR = 1.5, 2.5
CLOSE_SHARE, MOST_FAR = 0.85, 5
"""The share of all reports that must be within the first factor, and how many may be beyond the second, each with a
remark in the catalog that says why."""
_USUAL_CHANNELS = 2
_USUAL_RAM_GB = 64.0
_BACKENDS = {"cuda": "CUDA", "vulkan": "Vulkan", "metal": "MTL", "rocm": "ROCm"}
_FLASH_NEXT = Hyperparameters(
    block_count=48,
    embedding_length=2560,
    head_count=24,
    head_count_kv=2,
    key_length=256,
    value_length=256,
    full_attention_interval=4,
    ssm_conv_kernel=4,
    ssm_state_size=128,
    ssm_group_count=16,
    ssm_inner_size=6144,
    context_length=262_144,
    vocab_size=248_320,
    indexer_head_count=4,
    indexer_key_length=128,
    indexer_top_k=2048,
    expert_count=512,
    expert_used_count=10,
)
_FLASH_NEXT_EXPERT, _FLASH_NEXT_TABLE_BYTES = 640, 28_800_138_240
"""Width of an expert, and the table of which a token reads a few rows. Both from headers of its files."""


class Compared(msgspec.Struct, frozen=True):
    """One report beside its estimate, in tokens per second."""

    report: SpeedReport
    reported: float
    estimated: float
    placement: str

    @property
    def ratio(self) -> float:
        """Estimate divided by report."""
        return self.estimated / self.reported

    @property
    def factor(self) -> float:
        """By how much they differ, in either direction: 1 is the same."""
        return max(self.ratio, 1 / self.ratio)


def compare(report: SpeedReport, catalog: Catalog) -> Compared:
    """Estimate what `report` measured."""
    facts, machine = _facts(report, catalog), _machine(report)
    plan = _plan(report, facts, machine)
    slow, fast = speed_at(facts, plan.options, plan.memory, machine, max(report.depth, 512))
    return Compared(report, math.sqrt(math.prod(report.range)), math.sqrt(slow * fast), plan.kind)


def _facts(report: SpeedReport, catalog: Catalog) -> ModelFacts:
    if report.model == "Qwen3.8-Flash-Next":
        dimensions = msgspec.structs.replace(dimensions_of(_FLASH_NEXT), feed_forward_length=_FLASH_NEXT_EXPERT)
        return estimate_facts(dimensions, "qwen35moe", report.n_bytes - _FLASH_NEXT_TABLE_BYTES)
    model = catalog.model(report.model)
    if model is None:
        raise ValueError(f"{report.model}: the catalog has no model with these layers")
    return estimate_model(model, report.n_bytes)


def _machine(report: SpeedReport) -> MachineMemory:
    ram = int((report.ram_gb or _USUAL_RAM_GB) * GIB)
    n_bytes = int(report.gpu_gb * GIB)
    names = [_BACKENDS.get(report.backend, _likely_backend(name)) for name in report.gpus]
    kind: DeviceKind = "igpu" if _is_unified(report) and names[0] != "MTL" else "gpu"
    devices = tuple(
        DeviceInfo(f"{backend}{index}", name, kind, backend, n_bytes, n_bytes)
        for index, (name, backend) in enumerate(zip(report.gpus, names, strict=True))
    )
    if _is_unified(report):
        ram = n_bytes
    pc = Pc(gpus=devices, ram_bytes=ram, reserve_bytes=GIB // 2)
    bandwidth = ram_bandwidth(report.ram_kind, report.ram_channels or _USUAL_CHANNELS)
    return msgspec.structs.replace(machine_memory(pc), ram_bandwidth=bandwidth)


def _is_unified(report: SpeedReport) -> bool:
    """Return whether the GPU of a report has no memory but the RAM."""
    cards = [find_card(name, round(report.gpu_gb * GIB)) for name in report.gpus]
    return bool(cards) and all(card is not None and card.shares_ram for card in cards)


def _likely_backend(name: str) -> str:
    """Return the backend of a report that doesn't name it: what the app would use."""
    if name.startswith("Apple"):
        return "MTL"
    return "Vulkan" if name.startswith(("RX", "Radeon")) else "CUDA"


def _plan(report: SpeedReport, facts: ModelFacts, machine: MachineMemory) -> Plan:
    options = LoadOptions(model="", n_ctx=report.n_ctx or max(report.depth, 8_192), vision="off")
    if report.cache_type:
        options = msgspec.structs.replace(options, type_k=report.cache_type, type_v=report.cache_type)
    if report.placement == "vram":
        return fixed_plan(facts, None, machine, msgspec.structs.replace(options, n_gpu_layers="all", n_cpu_moe=0))
    if report.placement == "experts" and report.on_cpu is not None:
        asked = msgspec.structs.replace(options, n_gpu_layers="all", n_cpu_moe=report.on_cpu)
        return fixed_plan(facts, None, machine, asked)
    return best_plan(facts, None, machine, options)


def summary(rows: Sequence[Compared]) -> str:
    """Return how many reports are within the targets, and the median of the factors."""
    close = sum(row.factor <= CLOSE for row in rows)
    return (
        f"{close} of {len(rows)} within a factor of {CLOSE} ({100 * close / len(rows):.0f}%; target "
        f"{100 * CLOSE_SHARE:.0f}%), {sum(row.factor > FAR for row in rows)} beyond {FAR} (target {MOST_FAR}), median "
        f"factor {statistics.median(row.factor for row in rows):.2f}, "
        f"median ratio {statistics.median(row.ratio for row in rows):.2f}"
    )


def is_met(rows: Sequence[Compared]) -> bool:
    """Return whether the estimates are within the targets."""
    far = [row for row in rows if row.factor > FAR]
    close = sum(row.factor <= CLOSE for row in rows)
    return close >= CLOSE_SHARE * len(rows) and len(far) <= MOST_FAR and all(row.report.remark for row in far)


def main() -> int:
    """Print the table and the summary; exit status 1 if a target is missed."""
    catalog = load_catalog()
    rows = [compare(report, catalog) for report in catalog.contents.speeds]
    lines = ["| model | quant | cards | backend | placement | depth | report | estimate | ratio | |", "|---" * 10 + "|"]
    for row in rows:
        report = row.report
        mark = "" if row.factor <= CLOSE else "beyond 1.5" if row.factor <= FAR else f"**beyond 2.5**: {report.remark}"
        cells = (
            report.model.removeprefix("Qwen"),
            report.quant,
            " + ".join(report.gpus) or "CPU",
            report.backend or "?",
            row.placement,
            f"{report.depth:,}",
            f"{row.reported:.1f}",
            f"{row.estimated:.1f}",
            f"{row.ratio:.2f}",
            mark,
        )
        lines.append("| " + " | ".join(cells) + " |")
    sys.stdout.write("\n".join([*lines, "", summary(rows), ""]))
    return 0 if is_met(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
