"""The Engine page: the running engine, devices and drivers, a test, and diagnostics to copy."""

import sys

import msgspec
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from qwendesk.commands.outgrown import NextStep
from qwendesk.core.devices import DeviceInfo, number_equal_names
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.number_format import show_decimal
from qwendesk.core.observed import Observed
from qwendesk.core.plan import Comparison, DevicePlan, Plan, SpeedEstimate
from qwendesk.core.redaction import redact_user_paths
from qwendesk.core.translation import join_list, mark, tr
from qwendesk.core.units import show_bytes, show_expected, show_rate, show_tokens
from qwendesk.engine.state import EngineState, Phase
from qwendesk.engines.engine_choice import EngineChoice
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.exact_plan import with_engine_numbers
from qwendesk.engines.link_text import link_sentences
from qwendesk.engines.load_planner import LoadPlanner
from qwendesk.engines.pending_load import PendingLoad, PendingLoadService
from qwendesk.engines.self_test import Check, Diagnosis, SelfTest, SelfTestState, versions
from qwendesk.engines.trial import EngineTrial
from qwendesk.engines.view.engines_presenter import EnginesPresenter
from qwendesk.engines.view.load_options.command_card import LoadedCommand
from qwendesk.engines.view.load_options.load_text import device_names, source_text
from qwendesk.hardware.snapshot import GpuReading, Snapshot
from qwendesk.widgets.bind import bind
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.display_texts import load_options_text
from qwendesk.widgets.layouts import DensitySpacing, FlowLayout
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.tasks import window_tasks
from qwendesk.widgets.theme_keeper import app_theme, current_theme


class EnginePageSection(msgspec.Struct, frozen=True):
    """A part of the page: the label and value of each row."""

    id: str
    title: str
    rows: tuple[tuple[str, str], ...]


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the page shows, as far as it is known."""

    state: EngineState = EngineState()
    snapshot: Snapshot | None = None
    diagnosis: Diagnosis | None = None
    engines: EngineChoice = EngineChoice()
    plan: Plan | None = None
    """Plan of the latest load."""
    measured_tok_s: float | None = None
    """The speed that was measured on this PC with the loaded model's options."""
    next_step: str = ""
    """Advice because the engine is outgrown; "" if it isn't."""
    compared: tuple[Comparison, ...] = ()
    """Predicted and measured memory of the loaded model."""


def sections(known: Known, *, platform: str) -> tuple[EnginePageSection, ...]:
    """Return all sections with what is known so far. Some values become known only by a test."""
    state, snapshot, diagnosis = known.state, known.snapshot, known.diagnosis
    devices = state.devices or (diagnosis.devices if diagnosis is not None else ())
    return (
        EnginePageSection("build", tr("Running engine"), _build(state, diagnosis)),
        EnginePageSection("plan", tr("Plan of the loaded model"), _plan(known)),
        EnginePageSection("devices", tr("Devices"), tuple(_device(device) for device in devices) or _no_devices()),
        EnginePageSection("hardware", tr("Hardware and drivers"), _hardware(snapshot, platform)),
        EnginePageSection("cpu", tr("CPU"), _processor(state, snapshot, diagnosis)),
    )


def test_lines(diagnosis: Diagnosis | None, *, running: bool) -> str:
    """Return the result of the test, one line for each question."""
    if running:
        return tr("Loading the demo model and asking it three questions…")
    if diagnosis is None:
        return tr(
            "Not tested yet. The test loads the built-in demo model next to yours, and asks it about text and a "
            "picture."
        )
    lines = [check_line(check) for check in diagnosis.self_test]
    lines.append(tr("All tests passed.") if diagnosis.passed else tr("A test failed. See above."))
    return "\n".join(lines)


def check_line(check: Check) -> str:
    mark = "✓" if check.passed else "✗"
    line = tr("{0} {1}, {2} s", mark, tr(check.name), show_decimal(check.seconds, 2))
    return tr("{0}: {1}", line, check.detail) if check.detail else line


def diagnostics(known: Known, versions: dict[str, str], platform: str) -> str:
    """Return the whole page as text for a bug report, without the user's name and folders."""
    state, diagnosis = known.state, known.diagnosis
    parts = [EnginePageSection("versions", tr("Versions"), tuple(versions.items()))]
    if known.engines.trials:
        parts.append(EnginePageSection("engines", tr("Engines"), _engines(known.engines)))
    parts += sections(known, platform=platform)
    blocks = ["\n".join([part.title, *(f"  {label}: {value}" for label, value in part.rows)]) for part in parts]
    if diagnosis is not None:
        blocks.append("\n".join([tr("Test"), *(f"  {check_line(check)}" for check in diagnosis.self_test)]))
    failure = state.failure or (diagnosis.failure if diagnosis is not None else None)
    if failure is not None:
        blocks.append("\n".join([f"{failure.title}. {failure.sentence}", *failure.engine_lines[-20:]]))
    if state.engine_exit is not None:
        blocks.append("\n".join([state.engine_exit.sentence, *state.engine_exit.engine_lines[-20:]]))
    return redact_user_paths("\n\n".join(blocks) + "\n")


def _build(state: EngineState, diagnosis: Diagnosis | None) -> tuple[tuple[str, str], ...]:
    phases = {
        Phase.OFF: tr("Not running. It starts when a model is loaded."),
        Phase.STARTING: tr("Starting"),
        Phase.IDLE: tr("Running, no model loaded"),
        Phase.LOADING: tr("Loading a model"),
        Phase.READY: tr("Running"),
        Phase.ANSWERING: tr("Answering"),
    }
    rows = [(tr("State"), phases[state.phase])]
    if state.report is not None and state.report.served_by is not None:
        served = state.report.served_by
        rows.append((tr("Server"), tr("{0} ({1})", served.program, served.address)))
        return tuple(rows)
    backends = state.welcome.backends if state.welcome is not None else diagnosis.backends if diagnosis else ()
    if state.welcome is not None:
        rows.append(("llama.cpp", tr("via llama-cpp-python {0}", state.welcome.package_version)))
    rows.append((tr("Backends"), join_list(backends) or tr("shown once it runs")))
    return tuple(rows)


def _engines(engines: EngineChoice) -> tuple[tuple[str, str], ...]:
    """Return a row for each engine on this PC, with the reason if it can't be used."""
    rows = [(tr("Engine “{0}”", trial.name), _use(trial, engines.chosen)) for trial in engines.trials]
    if engines.note:
        rows.append((tr("Note"), engines.note))
    return tuple(rows)


def _use(trial: EngineTrial, chosen: str) -> str:
    """Return the state of an engine. An engine that is neither chosen nor tried is worse than the one that runs."""
    if trial.name == chosen:
        return tr("in use")
    if trial.usable:
        return tr("usable, not chosen")
    return trial.reason or tr("not tried, because a better one runs")


def _plan(known: Known) -> tuple[tuple[str, str], ...]:
    """Return the plan of the loaded model with its reasons, and the comparison with measured memory.

    Leaves out a plan for a model other than the loaded one.
    """
    plan, report = known.plan, known.state.report
    rows: list[tuple[str, str]] = []
    if report is not None and report.served_by is not None:
        return ((tr("Plan"), load_options_text(report.served_by.name)),)
    if plan is None or report is None or plan.options.model != report.options.model:
        rows.append((tr("Plan"), tr("Made when a model is loaded")))
    else:
        if report.allocations:  # the same numbers as in the inspector
            plan = with_engine_numbers(plan, report.allocations, report.options)
        rows.append((tr("Numbers"), plan.accuracy or source_text(plan, is_loaded=True)))
        names = device_names(plan)
        rows += [(names[each.name], _parts(each)) for each in plan.memory.gpus]
        rows.append((tr("RAM"), _parts(plan.memory.ram)))
        rows.append((tr("Why"), "\n".join(plan.why)))
        if known.measured_tok_s is not None:
            rows.append((tr("Speed"), tr("Measured here: {0} tok/s", show_rate(known.measured_tok_s))))
        elif plan.speed is not None:
            rows.append((tr("Expected speed"), _speed(plan.speed)))
    if known.next_step:
        rows.append((tr("Next step"), known.next_step))
    rows += [(tr("This model, {0}", _memory_name(row.device)), _predicted(row)) for row in known.compared]
    if any(row.device != "CPU" for row in known.compared):
        rows.append((tr("Later plans"), tr("With the difference seen in recent loads")))
    return tuple(rows)


def _memory_name(device: str) -> str:
    return tr("RAM") if device == "CPU" else device


def _predicted(row: Comparison) -> str:
    return tr("estimated {0}, actual {1}", show_bytes(row.predicted_bytes), show_bytes(row.real_bytes))


def _parts(device: DevicePlan) -> str:
    is_cpu = device.name == "CPU"
    parts = (
        (mark("weights {0}"), device.weights_bytes),
        (mark("context {0}"), device.kv_bytes + device.recurrent_bytes),
        (mark("buffers {0}"), device.compute_bytes),
        (mark("pictures {0}"), device.vision_bytes),
        (mark("next-token layer {0}"), device.draft_bytes),
        (mark("the program and its cache {0}") if is_cpu else mark("driver and other {0}"), device.other_bytes),
        (mark("used by the GPU {0}"), device.gpu_bytes),
    )
    detail = join_list(tr(text, show_bytes(n_bytes)) for text, n_bytes in parts if n_bytes)
    total = show_bytes(device.total_bytes)
    if device.budget_bytes is None:
        return tr("{0}: {1}", total, detail)
    return tr("{0} of {1} available: {2}", total, show_bytes(device.budget_bytes), detail)


def _speed(speed: SpeedEstimate) -> str:
    return tr(
        "Estimated {0} tok/s at the start, {1} at {2} context",
        show_expected(speed.start), show_expected(speed.long), show_tokens(speed.long_tokens),
    )  # fmt: skip


def _device(device: DeviceInfo) -> tuple[str, str]:
    kinds = {"cpu": tr("CPU"), "gpu": tr("GPU"), "igpu": tr("integrated GPU"), "accelerator": tr("accelerator")}
    text = f"{device.description.strip() or device.name} ({kinds[device.kind]})"
    if device.free_bytes is None or device.total_bytes is None:
        return device.name, text
    return device.name, tr("{0}: {1} of {2} free", text, show_bytes(device.free_bytes), show_bytes(device.total_bytes))


def _no_devices() -> tuple[tuple[str, str], ...]:
    return ((tr("Devices"), tr("Load a model or test the engine to see them.")),)


def _hardware(snapshot: Snapshot | None, platform: str) -> tuple[tuple[str, str], ...]:
    if snapshot is None:
        return ((tr("GPUs"), tr("Not checked yet")),)
    rows: list[tuple[str, str]] = []
    names = number_equal_names([gpu.name or tr("GPU at {0}", gpu.key) for gpu in snapshot.gpus])
    links = link_sentences(snapshot.gpus)
    for name, gpu in zip(names, snapshot.gpus, strict=True):
        rows.append((name, _gpu(gpu)))
        if gpu.key in links:
            rows.append((tr("PCIe link"), links[gpu.key]))
        rows.append((tr("When memory runs out"), sysmem_fallback(gpu, platform)))
    if not rows:
        rows.append((tr("GPUs"), tr("None found. The model runs on the CPU, from RAM.")))
    rows += [(tr("Note"), note) for note in snapshot.notes]
    return tuple(rows)


def _gpu(gpu: GpuReading) -> str:
    memory = ""
    if gpu.unified:
        memory = tr("uses the RAM")
    elif gpu.total_bytes is not None and gpu.headroom_bytes is not None:
        memory = tr("{0} of {1} free", show_bytes(gpu.headroom_bytes), show_bytes(gpu.total_bytes))
    parts = [
        memory,
        tr("driver {0}", gpu.driver) if gpu.driver else "",
        tr("PCIe {0}.0 ×{1}", gpu.pcie_generation, gpu.pcie_width) if gpu.pcie_generation and gpu.pcie_width else "",
        tr("the system lets one program use {0}", show_bytes(gpu.budget_bytes)) if gpu.budget_bytes else "",
    ]
    return join_list(parts) or tr("no details known")


def sysmem_fallback(gpu: GpuReading, platform: str) -> str:
    """Return what this GPU's driver does when video memory runs out, as far as it is known."""
    if gpu.unified:
        return tr("It uses the RAM, so the PC starts to swap")
    if platform == "win32" and gpu.vendor == "nvidia":
        return tr(
            "The driver moves memory to the RAM unless “CUDA - Sysmem Fallback Policy” in the NVIDIA Control Panel is "
            "“Prefer No Sysmem Fallback”. QwenDesk can't read that setting."
        )
    if platform == "win32":
        return tr("Windows moves memory to the RAM: slow, without an error")
    if gpu.vendor == "nvidia":
        return tr("An error: this driver doesn't move the engine's memory to the RAM")
    if gpu.vendor == "amd":
        return tr("The driver moves memory to the RAM (GTT): slow, without an error")
    return tr("Not known for this driver")


def _processor(
    state: EngineState, snapshot: Snapshot | None, diagnosis: Diagnosis | None
) -> tuple[tuple[str, str], ...]:
    features = state.cpu_features or (diagnosis.cpu_features if diagnosis is not None else ())
    rows = [(tr("Features the engine uses"), join_list(features) or tr("shown once it runs"))]
    system = snapshot.system if snapshot is not None else None
    if system is not None and system.cpu_cores:
        rows.append((tr("Cores"), str(system.cpu_cores)))
    if system is not None and system.ram_total_bytes is not None and system.ram_available_bytes is not None:
        free, total = show_bytes(system.ram_available_bytes), show_bytes(system.ram_total_bytes)
        rows.append((tr("RAM"), tr("{0} of {1} free", free, total)))
    return tuple(rows)


# Maximum width of the content, the same as on the settings page.
_WIDEST = 760


class EnginePage(QScrollArea):
    """Shows what is known of the engine, and tests it. It has a list of engines if the user can choose one."""

    def __init__(
        self,
        engine: EngineService,
        planner: LoadPlanner,
        self_test: SelfTest,
        navigation: Navigation,
        *,
        engines: EnginesPresenter | None,
        snapshot: Observed[Snapshot | None],
    ) -> None:
        super().__init__()
        self._self_test, self._tasks = self_test, window_tasks()
        self._known = Known()
        self._running = False
        self._n_others = 0
        self.setObjectName("engine.page")
        self.setAccessibleName(tr("Engine"))
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        # Page Up and Page Down work while a button has the focus. A focus ring around the whole page would not help.
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._test = TextButton(tr("Test engine"), kind="primary")
        describe(
            self._test, "engine.test", tr("Test engine"), tr("Ask the built-in demo model about text and a picture")
        )
        self._test.clicked.connect(self.test)
        self._copy = TextButton(tr("Copy diagnostics"), icon_name="copy")
        describe(self._copy, "engine.copy", tr("Copy diagnostics"), tr("Copy all of this, without any message text"))
        self._copy.clicked.connect(self.copy_all)
        self._measure = TextButton(tr("Measure this PC…"))
        describe(
            self._measure,
            "engine.measure",
            tr("Measure this PC…"),
            tr("Measure answers, memory and speed of every engine, on the Bench page"),
        )
        self._measure.clicked.connect(lambda: navigation.bench_tab_asked.emit("pc"))
        self._result = QLabel()
        self._result.setObjectName("engine.result")
        self._result.setWordWrap(True)
        self._result.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._cards: dict[str, _Card] = {}
        self.setWidget(self._content())
        self._on_theme()
        app_theme().changed.connect(self._on_theme)
        self._show_all()
        if engines is not None:
            self._column.insertWidget(self._column.indexOf(self._result) + 1, engines.list)
            engines.list.show()
            bind(self, engines.engines, lambda choice: self._learn(engines=choice))
        bind(self, engine.observed, lambda state: self._learn(state=state, plan=planner.latest))
        bind(self, snapshot, lambda found: self._learn(snapshot=found))
        bind(self, self_test.state, self._show_test)

    def add_command(
        self,
        pending: PendingLoadService,
        options: Observed[GenerationOptions],
        next_step: Observed[NextStep | None],
        compared: Observed[tuple[Comparison, ...]],
    ) -> None:
        """Add the command of the loaded model, for other programs, and show what was measured of it.

        `options` are those of the open chat, `next_step` is what to do because the engine is outgrown.
        """
        self.command = LoadedCommand(pending, options)
        self._column.insertWidget(self._column.count() - 1, self.command)
        self._n_others += 1
        bind(self, pending.state, self._show_measured)
        bind(self, next_step, lambda step: self._learn(next_step=step.sentence if step is not None else ""))
        bind(self, compared, lambda rows: self._learn(compared=rows))

    def add_card(self, card: QWidget) -> None:
        """Add a card of another feature below the sections."""
        self._column.insertWidget(self._column.count() - 1 - self._n_others, card)
        self._n_others += 1

    def show_vllm_command(self) -> None:
        """Show the command that runs the loaded model in vLLM."""
        self.command.card.show_kind("vllm")
        self.ensureWidgetVisible(self.command)

    def test(self) -> None:
        """Test the engine, and show the result."""
        self._tasks.start(self._self_test.run())

    def _show_measured(self, pending: PendingLoad) -> None:
        """Show the measured speed, unless it is of options that aren't loaded."""
        tok_s = pending.measured_tok_s if pending.is_loaded and not pending.needs_reload else None
        if tok_s != self._known.measured_tok_s:
            self._learn(measured_tok_s=tok_s)

    def _show_test(self, state: SelfTestState) -> None:
        if state.is_running and self._test.hasFocus():
            self._copy.setFocus()  # disabling a button moves its focus to the first control of the window
        self._running = state.is_running
        self._learn(diagnosis=state.diagnosis)

    def _content(self) -> QWidget:
        page = QWidget()
        page.setProperty("kind", "page")
        middle = self._middle = QWidget()
        self._column = QVBoxLayout(middle)
        self._column.setContentsMargins(0, 20, 0, 24)
        self._column.setSpacing(16)
        DensitySpacing(self._column)
        title = QLabel(tr("Engine"))
        title.setProperty("kind", "pagetitle")
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(title)
        head.addStretch(1)
        buttons = FlowLayout()
        buttons.setAlignment(Qt.AlignmentFlag.AlignVCenter)
        buttons.addWidget(self._measure)
        buttons.addWidget(self._copy)
        buttons.addWidget(self._test)
        head.addLayout(buttons)
        self._column.addLayout(head)
        self._column.addWidget(self._result)
        self._column.addStretch(1)
        row = QHBoxLayout(page)
        row.setContentsMargins(40, 0, 40, 0)
        row.addStretch(1)
        row.addWidget(middle, 1000)
        row.addStretch(1)
        return page

    def _on_theme(self) -> None:
        self._middle.setMaximumWidth(current_theme().px(_WIDEST))

    def _learn(self, **changes: object) -> None:
        self._known = msgspec.structs.replace(self._known, **changes)
        self._show_all()

    def _show_all(self) -> None:
        self._test.setEnabled(not self._running)
        self._result.setText(test_lines(self._known.diagnosis, running=self._running))
        for section in sections(self._known, platform=sys.platform):
            card = self._cards.get(section.id)
            if card is None:
                card = self._cards[section.id] = _Card(section)
                self._column.insertWidget(self._column.count() - 1 - self._n_others, card)
            card.show_section(section)

    def copy_all(self) -> None:
        """Copy everything on the page to the clipboard as text."""
        text = diagnostics(self._known, versions(), platform=sys.platform)
        QGuiApplication.clipboard().setText(text)


class _Card(QFrame):
    """One section: a heading and rows of label and value."""

    def __init__(self, section: EnginePageSection) -> None:
        super().__init__()
        self.setProperty("kind", "modelcard")
        self.setObjectName(f"engine.{section.id}")
        self._rows: list[tuple[QLabel, QLabel]] = []
        self._shown: EnginePageSection | None = None
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(16, 12, 16, 14)
        self._grid.setHorizontalSpacing(24)
        self._grid.setVerticalSpacing(8)
        self._grid.setColumnMinimumWidth(0, 200)
        self._grid.setColumnStretch(1, 1)
        heading = QLabel(section.title)
        heading.setProperty("kind", "heading")
        self._grid.addWidget(heading, 0, 0, 1, 2)

    def show_section(self, section: EnginePageSection) -> None:
        if section == self._shown:
            return
        self._shown = section
        while len(self._rows) < len(section.rows):
            self._add_row()
        for index, (label, value) in enumerate(self._rows):
            known = index < len(section.rows)
            label.setVisible(known)
            value.setVisible(known)
            if known:
                label.setText(section.rows[index][0])
                value.setText(section.rows[index][1])

    def _add_row(self) -> None:
        label, value = QLabel(), QLabel()
        label.setProperty("kind", "dim")
        label.setWordWrap(True)
        value.setWordWrap(True)
        value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        value.setAlignment(Qt.AlignmentFlag.AlignTop)
        label.setAlignment(Qt.AlignmentFlag.AlignTop)
        place = len(self._rows) + 1
        self._grid.addWidget(label, place, 0)
        self._grid.addWidget(value, place, 1)
        self._rows.append((label, value))
