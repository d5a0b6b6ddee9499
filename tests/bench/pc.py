"""A made-up PC for trials: scripted engines and probes that know what the test says."""

from collections.abc import Callable

import msgspec

from qwendesk.bench.bench_runs import BenchRuns
from qwendesk.bench.pc_report import PcTrialReport
from qwendesk.bench.pc_trial import MOST_MODELS, PcTrial
from qwendesk.core.app_options import AppOptions
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.observed import Observed
from qwendesk.core.options import DecidedOptions, LoadOptions
from qwendesk.core.units import GIB, MIB
from qwendesk.engine.dry_run_protocol import Estimated
from qwendesk.engine.protocol import Allocation
from qwendesk.engines.engine_choice import EngineChoice
from qwendesk.engines.exact_plan import Ask
from qwendesk.engines.trial import EngineTrial
from qwendesk.hardware.probes.base import ProbeRequest, ProbeResult
from qwendesk.hardware.snapshot import GpuReading, ProcessMemory, SystemReading
from qwendesk.hardware.snapshot_reader import SnapshotReader
from tests.fakes.bench import FakeBenchClient
from tests.fakes.engine import ScriptedAnswer

CPU = DeviceInfo("CPU", "Fake CPU", "cpu", "CPU", 32 * GIB, 30 * GIB)
CARD = DeviceInfo("Vulkan0", "Fake Card", "gpu", "Vulkan", 12 * GIB, 11 * GIB)
CPU_ENGINE = EngineTrial(name="cpu-avx2", backend="cpu", usable=True, devices=(CPU,))
GPU_ENGINE = EngineTrial(name="vulkan", backend="vulkan", usable=True, devices=(CARD, CPU))
BROKEN_ENGINE = EngineTrial(name="cuda", backend="cuda", reason="This PC has no NVIDIA driver.")
PID = 4_194_305
"""No process has this number."""


def right_answers() -> list[ScriptedAnswer]:
    """The first token, and the answers to the trial's questions in their order."""
    return [
        ScriptedAnswer(text="Hello"),
        ScriptedAnswer(text="2 + 3 = 5"),
        ScriptedAnswer(reasoning="The sum is 5.", text="2 + 3 = 5"),
        ScriptedAnswer(text="QwenDesk is a desktop app."),
        ScriptedAnswer(text="It has fewer bits."),
        ScriptedAnswer(text="A red circle on a white background."),
    ]


class CardProbe:
    """Says that the card has 2 GB in use, of which the engine's process holds a half."""

    def __init__(self) -> None:
        self.shared_bytes = 0
        """Shared memory of the engine's process."""
        self.is_closed = False

    def read(self, request: ProbeRequest) -> ProbeResult:
        ours = ProcessMemory(pid=request.pid or 0, name="worker", dedicated_bytes=GIB, shared_bytes=self.shared_bytes)
        card = GpuReading(
            pci="0000:01:00.0",
            name="Fake Card",
            driver="1.2",
            total_bytes=12 * GIB,
            used_bytes=2 * GIB,
            processes=(ours,),
        )
        return ProbeResult(gpus=(card,), system=SystemReading(ram_total_bytes=32 * GIB, ram_available_bytes=30 * GIB))

    def close(self) -> None:
        self.is_closed = True


class TrialPc:
    """Engines by name, each with a scripted client, and the trial of them."""

    def __init__(self, *trials: EngineTrial) -> None:
        self.trials = trials or (GPU_ENGINE, CPU_ENGINE, BROKEN_ENGINE)
        self.probe = CardProbe()
        self.models: list[LoadOptions] = []
        self.clients: list[tuple[str, FakeBenchClient]] = []
        """Every client of the trial with the name of its engine, in order."""
        self.prepare: Callable[[str, FakeBenchClient], None] = lambda _name, _client: None
        """Called with each new client."""
        self.trial = self.trial_with(BenchRuns())

    def trial_with(self, runs: BenchRuns) -> PcTrial:
        """Make the trial that is run by `runs`, as in a window."""
        self.trial = PcTrial(
            runs,
            self._models,
            app=Observed(AppOptions()),
            find_engines=self._choice,
            client_of=self._client,
            dry_run=self._dry_run,
            make_reader=lambda: SnapshotReader((self.probe,)),
        )
        return self.trial

    async def report(self, most_models: int = MOST_MODELS) -> PcTrialReport:
        """Run the trial and return its report."""
        await self.trial.run(most_models)
        report = self.trial.state.value.report
        assert report is not None
        return report

    def requests(self, engine: str) -> list[object]:
        return [request for name, client in self.clients if name == engine for request in client.requests]

    async def _choice(self) -> EngineChoice:
        usable = next((trial.name for trial in self.trials if trial.usable), "")
        return EngineChoice(self.trials, usable)

    async def _models(self) -> list[LoadOptions]:
        return self.models

    def _client(self, trial: EngineTrial) -> FakeBenchClient:
        client = FakeBenchClient()
        client.answers, client.tok_s = right_answers(), 1000.0
        client.devices = trial.devices
        client.pid = PID
        name = "Vulkan0" if trial.backend == "vulkan" else "CPU"
        client.report = msgspec.structs.replace(
            client.report,
            allocations=(Allocation(name, weights_bytes=3 * MIB, kv_bytes=32 * MIB),),
        )
        self.prepare(trial.name, client)
        self.clients.append((trial.name, client))
        return client

    def _dry_run(self, trial: EngineTrial) -> Ask:
        async def ask(_options: DecidedOptions) -> Estimated:
            return Estimated(id=0, allocations=(Allocation("CPU", weights_bytes=3 * MIB),))

        return ask
