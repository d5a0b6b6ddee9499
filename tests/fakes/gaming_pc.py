"""A gaming PC for the meters: a 24 GB card, a model on it, and a game that comes and goes."""

from collections.abc import Mapping

import msgspec

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.options import DecidedOptions, LoadOptions
from qwendesk.core.plan import Plan
from qwendesk.core.units import GIB, MIB
from qwendesk.engine.protocol import Allocation, LoadReport
from qwendesk.hardware.probes.base import ProbeRequest, ProbeResult
from qwendesk.hardware.snapshot import GpuReading, ProcessMemory, SystemReading
from qwendesk.hardware.snapshot_reader import SnapshotReader
from qwendesk.meters.spill_remedies import LoadEstimate
from tests.fakes.engine import DEMO_REPORT, FakeEngineClient

ENGINE, GAME = 4711, 900
CARD = DeviceInfo("CUDA0", "NVIDIA GeForce RTX 3090", "gpu", "CUDA", 24 * GIB, 22 * GIB)
OPTIONS = DecidedOptions(
    model="/models/Qwen3.5-35B-A3B-UD-Q4_K_L.gguf",
    mmproj="/models/mmproj-F16.gguf",
    n_ctx=131_072,
    n_gpu_layers="all",
    n_cpu_moe=0,
    type_k="f16",
    type_v="f16",
    vision="gpu",
    load_mode="mmap",
    n_ubatch=512,
    n_threads=8,
)
ON_CARD = Allocation("CUDA0", 18 * GIB, 2 * GIB, 63 * MIB, 500 * MIB, GIB)
REPORT = LoadReport(
    **{name: getattr(DEMO_REPORT, name) for name in DEMO_REPORT.__struct_fields__}
    | {
        "options": OPTIONS,
        "name": "Qwen3.5-35B-A3B",
        "n_ctx": 131_072,
        "n_layers": 40,
        "allocations": (ON_CARD, Allocation("CPU", 500 * MIB, 0, 0, 300 * MIB)),
    }
)


class GamingPc:
    """A probe. What does not fit into the card's 24 GB sits in shared memory, as Windows does it."""

    def __init__(self, *, has_card: bool = True, has_second_card: bool = False) -> None:
        self.has_card, self.has_second_card = has_card, has_second_card
        self.desktop = 600 * MIB
        self.game = 0
        self.buffers_in_ram = 300 * MIB
        self.busy, self.watts = 97.0, 312.0
        self.engine: FakeEngineClient | None = None
        self.looks = 0

    @property
    def model(self) -> int:
        """Bytes of the model on the card: what the engine allocated, while it is loaded there."""
        if self.engine is None or not self.engine.is_loaded() or not self.has_card:
            return 0
        return self.size

    size = 18 * GIB + 2 * GIB + 63 * MIB + 500 * MIB + GIB

    def follow(self, plan: Plan) -> None:
        """The model takes what this plan says from its next load on, and the engine reports it so."""
        card = plan.memory.gpus[0]
        self.size = card.total_bytes - card.other_bytes
        self.buffers_in_ram = plan.memory.ram.compute_bytes
        if self.engine is not None:
            rows = tuple(
                Allocation(
                    each.name, each.weights_bytes, each.kv_bytes, each.recurrent_bytes, each.compute_bytes,
                    each.vision_bytes,
                )
                for each in (card, plan.memory.ram)
            )  # fmt: skip
            self.engine.report = msgspec.structs.replace(REPORT, allocations=rows, n_ctx=plan.options.n_ctx)

    def shrink(self, n_bytes: int) -> None:
        """The model takes so much less from its next load on, and the engine reports it so."""
        self.size -= n_bytes
        if self.engine is not None:
            row = msgspec.structs.replace(ON_CARD, weights_bytes=ON_CARD.weights_bytes - n_bytes)
            self.engine.report = msgspec.structs.replace(REPORT, allocations=(row, *REPORT.allocations[1:]))

    def read(self, request: ProbeRequest) -> ProbeResult:
        self.looks += 1
        system = SystemReading(
            ram_total_bytes=64 * GIB, ram_available_bytes=46 * GIB, cpu_percent=12.0, cpu_cores=8,
            engine_ram_bytes=2 * GIB,
        )  # fmt: skip
        cards = (self._card(),) if self.has_card else ()
        return ProbeResult(gpus=(*cards, *((_second_card(),) if self.has_second_card else ())), system=system)

    def close(self) -> None:
        """Nothing stays open."""

    def _card(self) -> GpuReading:
        spilled = max(0, self.desktop + self.game + self.model - 24 * GIB)
        rows = [ProcessMemory(pid=1, name="dwm.exe", dedicated_bytes=self.desktop, shared_bytes=0)]
        if self.model:
            dedicated = self.model - spilled
            shared = self.buffers_in_ram + spilled
            rows.append(ProcessMemory(pid=ENGINE, name="", dedicated_bytes=dedicated, shared_bytes=shared))
        if self.game:
            rows.append(ProcessMemory(pid=GAME, name="Cyberdrome.exe", dedicated_bytes=self.game, shared_bytes=0))
        return GpuReading(
            pci="0000:01:00.0",
            name="NVIDIA GeForce RTX 3090",
            vendor="nvidia",
            driver="575.64",
            total_bytes=24 * GIB,
            used_bytes=min(24 * GIB, self.desktop + self.game + self.model),
            busy_percent=self.busy,
            power_w=self.watts,
            power_limit_w=350.0,
            temperature_c=71.0,
            core_mhz=1695,
            memory_mhz=9501,
            pcie_generation=4,
            pcie_max_generation=4,
            pcie_width=16,
            processes=tuple(rows),
        )


def _second_card() -> GpuReading:
    """An equal card that nothing but the model uses."""
    return GpuReading(
        pci="0000:02:00.0",
        name="NVIDIA GeForce RTX 3090",
        vendor="nvidia",
        total_bytes=24 * GIB,
        used_bytes=9 * GIB,
        busy_percent=41.0,
        power_w=128.0,
        power_limit_w=350.0,
    )


def engine_on(pc: GamingPc) -> FakeEngineClient:
    """A scripted engine whose model lies on this PC's card, or in its RAM."""
    client = FakeEngineClient(report=REPORT)
    client.pid = ENGINE
    if pc.has_card:
        second = (msgspec.structs.replace(CARD, name="CUDA1"),) if pc.has_second_card else ()
        client.devices = (CARD, *second, *client.devices)
    else:
        client.report = msgspec.structs.replace(REPORT, allocations=(Allocation("CPU", 19 * GIB, 2 * GIB),))
    pc.engine = client
    return client


def reader_of(pc: GamingPc) -> SnapshotReader:
    return SnapshotReader((pc,))


def estimated(options: LoadOptions) -> LoadEstimate:
    """A planner of one sum: 400 MiB an expert layer, 1 GiB for pictures, 2 GiB of f16 cache."""
    experts = options.n_cpu_moe if isinstance(options.n_cpu_moe, int) else 0
    gpus: Mapping[str, int] = {
        "CUDA0": 18 * GIB
        - experts * 400 * MIB
        + (GIB if options.vision == "gpu" else 0)
        + (2 * GIB if options.type_k == "f16" else GIB)
    }
    return LoadEstimate(gpus, GIB + experts * 400 * MIB, (80.0, 90.0) if experts else None)
