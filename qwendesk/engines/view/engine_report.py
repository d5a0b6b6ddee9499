"""What the Engine page says: whether everything works, the running engine, devices and drivers, and a test. No Qt."""

from typing import Literal

import msgspec

from qwendesk.core.devices import DeviceInfo, number_equal_names, short_card_name
from qwendesk.core.number_format import show_decimal
from qwendesk.core.plan import Comparison, DevicePlan, Plan, SpeedEstimate
from qwendesk.core.redaction import redact_user_paths
from qwendesk.core.translation import join_list, mark, tr, tr_n
from qwendesk.core.units import show_bytes, show_expected, show_rate, show_tokens
from qwendesk.engine.state import EngineState, Phase
from qwendesk.engines.engine_choice import EngineChoice
from qwendesk.engines.exact_plan import with_engine_numbers
from qwendesk.engines.link_text import link_sentences
from qwendesk.engines.self_test import Check, Diagnosis
from qwendesk.engines.trial import EngineTrial
from qwendesk.engines.view.load_options.load_text import device_names, source_text
from qwendesk.hardware.snapshot import GpuReading, Snapshot
from qwendesk.widgets.display_texts import load_options_text


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
    spills: bool = False
    """Whether part of the model is in shared memory."""


class Health(msgspec.Struct, frozen=True):
    """Whether everything works, in words."""

    tone: Literal["good", "warn", "bad", "plain"]
    title: str
    sentence: str = ""


def health(known: Known) -> Health:
    """Return whether the engine works, and where the loaded model is."""
    state, diagnosis, report = known.state, known.diagnosis, known.state.report
    failure = state.failure or (diagnosis.failure if diagnosis is not None else None)
    if failure is not None:
        return Health("bad", f"{failure.title}.", failure.sentence)
    if state.engine_exit is not None and report is None:
        return Health("bad", tr("The engine stopped."), state.engine_exit.sentence)
    if diagnosis is not None and not diagnosis.passed:
        return Health("bad", tr("A test failed."), tr("See what it said below."))
    if known.spills:
        sentence = tr("Part of it is in shared memory, which is many times slower. The chat page has ways out.")
        return Health("warn", tr("The model spills."), sentence)
    if state.is_loading:
        return Health("plain", tr("Loading a model."))
    if report is not None:
        return Health("good", tr("Everything works."), _place_sentence(known))
    if diagnosis is not None:
        return Health("good", tr("Everything works."), tr("No model is loaded."))
    return Health("plain", tr("Ready."), tr("The engine starts when a model is loaded."))


def facts(known: Known) -> tuple[tuple[str, str], ...]:
    """Return the rows that most people want to know: the engine, the graphics cards and the CPU."""
    state, diagnosis, report = known.state, known.diagnosis, known.state.report
    devices = state.devices or (diagnosis.devices if diagnosis is not None else ())
    rows: list[tuple[str, str]] = []
    if state.welcome is not None:
        backends = join_list(state.welcome.backends)
        rows.append(
            (tr("Engine"), tr("llama.cpp via llama-cpp-python {0}: {1}", state.welcome.package_version, backends))
        )
    elif known.engines.chosen:
        rows.append((tr("Engine"), known.engines.chosen))
    used = {row.device for row in report.allocations if row.total_bytes} if report is not None else set()
    gpus = [device for device in devices if device.kind in ("gpu", "igpu")]
    for device in gpus:
        name = short_card_name(device.description.strip() or device.name)
        size = show_bytes(device.total_bytes) if device.total_bytes else ""
        use = "" if report is None else tr("is used") if device.name in used else tr("isn't used")
        rows.append((tr("Graphics card"), " · ".join(part for part in (name, size, use) if part)))
    if devices and not gpus and known.snapshot is not None:
        for gpu in known.snapshot.gpus:
            name = short_card_name(gpu.name or tr("GPU"))
            rows.append((tr("Graphics card"), tr("{0} · this engine can't use it", name)))
    cpu = next((device for device in devices if device.kind == "cpu"), None)
    cores = known.snapshot.system.cpu_cores if known.snapshot is not None else None
    threads = report.options.n_threads if report is not None else 0
    parts = (
        cpu.description.strip() if cpu is not None else "",
        tr_n("{0} core", "{0} cores", cores) if cores else "",
        tr_n("{0} thread used", "{0} threads used", threads) if threads else "",
    )
    if any(parts):
        rows.append((tr("CPU"), " · ".join(part for part in parts if part)))
    return tuple(rows)


def _place_sentence(known: Known) -> str:
    report, plan = known.state.report, known.plan
    if report is None:
        return ""
    if report.served_by is not None:
        return tr("The model runs on a server.")
    if plan is not None and plan.options.model == report.options.model:
        kind = plan.kind
    else:
        kind = (
            "cpu" if not any(row.total_bytes for row in report.allocations if row.device != "CPU") else "layers_in_ram"
        )
    if kind == "vram":
        return tr("The model runs on the graphics card.")
    if kind == "cpu":
        return tr("The model runs on the CPU, from RAM.")
    if kind == "disk":
        return tr("The model is larger than the memory: parts are read from the drive again and again.")
    return tr("The model runs on the graphics card and in RAM.")


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
        return ""
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
