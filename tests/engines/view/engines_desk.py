"""A window on made-up engine folders."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtWidgets import QAbstractButton, QRadioButton, QWidget

from qwendesk.app.parts import build
from qwendesk.core.engine_manifest import EnginePack
from qwendesk.core.units import GIB
from qwendesk.engine.protocol import Load
from qwendesk.engines.engine_choice import EngineChoiceService
from qwendesk.hardware.probes.base import ProbeRequest, ProbeResult
from qwendesk.hardware.snapshot import GpuReading
from qwendesk.hardware.snapshot_reader import SnapshotReader
from qwendesk.meters.services import MeterSource
from qwendesk.services import Doubles
from qwendesk.settings.service import SettingsService
from tests.fakes.engine import FakeEngineClient, decide_by_default
from tests.fakes.engine_folders import VERSION, Tries
from tests.window_desk import Desk

CARD = GpuReading(
    pci="0000:01:00.0", name="RTX 3090", vendor="nvidia", driver="575.64", compute_capability=(8, 6),
    total_bytes=24 * GIB,
)  # fmt: skip


class OneCard:
    """A probe that sees an NVIDIA card."""

    def read(self, _request: ProbeRequest) -> ProbeResult:
        return ProbeResult(gpus=(CARD,))

    def close(self) -> None:
        """Nothing stays open."""


class EnginesDesk(Desk):
    """A window on engine folders in `place`; `tries` says which of them run."""

    def __init__(self, client: FakeEngineClient, place: Path, tries: Tries, packs: tuple[EnginePack, ...]) -> None:
        self.place, self.tries = place, tries
        self.engines = EngineChoiceService(
            (place.with_name("app"), place), VERSION, has_installed=False, try_one=tries,
            prove_one=tries.prove,
            features=lambda: ("avx2", "sse4_2"), crash_file=place.with_name("crashes.json"),
        )  # fmt: skip
        parts = build(
            client,
            decide=decide_by_default,
            engines=self.engines,
            doubles=Doubles(packs=packs, meters=MeterSource(reader=SnapshotReader((OneCard(),)))),
            settings=SettingsService(place.with_name("settings.json")),
        )
        super().__init__(parts, client)
        self.window.show()
        self.window.activateWindow()

    @property
    def loads(self) -> int:
        return sum(isinstance(each, Load) for each in self.client.requests)

    async def begin(self) -> None:
        """As the app does at its start."""
        await self.engines.choose(self.parts.services.settings.options.engine)
        await self.parts.services.meters.service.sample()
        self.window.show_page("engine")
        if not self.is_shown("engine.list"):
            self.click("engine.engines")
        # Where a click lands is known when the list is laid out.
        rows = self.find("engine.list", QWidget).findChildren(QRadioButton)
        await self.until(lambda: all(row.hitButton(row.rect().center()) for row in rows))

    def state_of(self, name: str) -> str:
        return self.text_of(f"engine.list.{name}.state")

    def is_wanted(self, name: str) -> bool:
        return self.find(f"engine.list.{name}.use", QRadioButton).isChecked()

    def answer_box(self, name: str) -> None:
        """Press one of the buttons of the question that is open."""
        self.find(name, QAbstractButton).click()

    async def until_quiet(self) -> None:
        await self.until(lambda: not self.engines.engines.trying and not self.parts.tasks._running)


MakeDesk = Callable[..., EnginesDesk]
