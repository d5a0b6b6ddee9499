"""`qwendesk doctor`: reports versions and devices, and tests the engine with the demo model."""

import asyncio
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from qwendesk.chat.question_files import ask_in_new_chat
from qwendesk.cli.terminal import Interrupts, Terminal
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.plan import DriveKind
from qwendesk.core.translation import mark, tr
from qwendesk.core.units import show_bytes
from qwendesk.engines.engine_choice import preferred_engine
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.link_text import link_text
from qwendesk.engines.self_test import Check, Diagnosis, examine
from qwendesk.hardware.gpu_links import LinkReport, link_reports
from qwendesk.hardware.snapshot_reader import read_gpus

_DRIVES: Mapping[DriveKind, str] = MappingProxyType({"ssd": "SSD", "hdd": mark("hard disk"), "": mark("unknown")})
EXIT_PASSED, EXIT_CANNOT_LOAD, EXIT_ENGINE_FAILED = 0, 3, 4


async def doctor(terminal: Terminal, interrupts: Interrupts, *, as_json: bool) -> int:
    """Run all checks, print the results and return the exit status."""
    task = asyncio.current_task()
    if task is not None:
        interrupts.on_request(task.cancel)
    engines = await preferred_engine(try_all=True)
    client = engines.client()
    engine = EngineService(client)
    try:
        diagnosis = await examine(client, engine, ask_in_new_chat(client, engine), engines.engines)
    finally:
        await engine.close()
    links = link_reports(await asyncio.to_thread(read_gpus))
    if as_json:
        found = {"passed": diagnosis.passed, "links": msgspec.to_builtins(links)}
        terminal.write_json(msgspec.to_builtins(diagnosis) | found)
    else:
        terminal.write(report_of(diagnosis, links))
    return _exit_status(diagnosis)


def _exit_status(diagnosis: Diagnosis) -> int:
    if diagnosis.failure is not None:
        return EXIT_CANNOT_LOAD
    return EXIT_PASSED if diagnosis.passed else EXIT_ENGINE_FAILED


def report_of(diagnosis: Diagnosis, links: Sequence[LinkReport]) -> str:
    """Return the diagnosis as readable text."""
    backends = ", ".join(diagnosis.backends) or tr("none")
    sections: list[tuple[str, list[str]]] = [
        (tr("Versions"), _table(diagnosis.versions)),
        (tr("Engine"), _table({tr("backends"): backends, tr("built for"): diagnosis.system_info})),
        *([(tr("Engines"), _table(diagnosis.engines))] if diagnosis.engines else []),
        (tr("Devices"), [_device_line(device) for device in diagnosis.devices] or [tr("none found")]),
        *([(tr("Links of graphics cards"), [f"{link.name}: {link_text(link)}" for link in links])] if links else []),
        (tr("CPU features"), [", ".join(diagnosis.cpu_features) or tr("none reported")]),
        (tr("Folders"), _table(diagnosis.folders)),
        (tr("Drive of the models folder"), [tr(_DRIVES[diagnosis.models_drive])]),
        (tr("Self-test with the demo model"), [_check_line(check) for check in diagnosis.self_test]),
    ]
    if diagnosis.failure is not None and diagnosis.failure.engine_lines:
        sections.append((tr("The engine's own lines"), list(diagnosis.failure.engine_lines[-20:])))
    text = "\n\n".join("\n".join([title, *(f"  {line}" for line in lines)]) for title, lines in sections)
    verdict = tr("All tests passed.") if diagnosis.passed else tr("A test failed. See above.")
    return f"{text}\n\n{verdict}\n"


def _table(rows: dict[str, Any]) -> list[str]:
    width = max(map(len, rows))
    return [f"{key:<{width}}  {value}" for key, value in rows.items()]


def _device_line(device: DeviceInfo) -> str:
    known = device.free_bytes is not None and device.total_bytes is not None
    free, total = show_bytes(device.free_bytes or 0), show_bytes(device.total_bytes or 0)
    memory = tr("{0} of {1} free", free, total) if known else ""
    return f"{device.name}: {device.description} ({device.kind}{', ' + memory if memory else ''})"


def _check_line(check: Check) -> str:
    detail = f"  {check.detail}" if check.detail else ""
    return f"{tr('pass') if check.passed else tr('FAIL')}  {tr(check.name)}  {check.seconds:.2f} s{detail}"
