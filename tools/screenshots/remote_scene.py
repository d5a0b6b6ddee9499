"""The picture of a chat over another engine: the real llama-server answers, with thinking, a picture and a tool."""

import tempfile
from collections.abc import Collection
from pathlib import Path

from PySide6.QtWidgets import QAbstractButton

from qwendesk.app.parts import Parts, build
from tests.fakes.engine import FakeEngineClient, decide_by_default
from tests.pictures import ShapePicture
from tests.remote.llama_server import LlamaServer, UrgingProxy, running_llama_server
from tools.screenshots.stage import find, save, settle, until

_WINDOW = (1080, 720)


async def remote(wanted: Collection[str]) -> None:
    """Needs llama-server: python -m tools.build_peer."""
    with running_llama_server() as server:
        proxy = UrgingProxy(server.address)
        await proxy.start()
        parts = build(FakeEngineClient(), decide=decide_by_default)
        try:
            parts.window.resize(*_WINDOW)
            parts.window.show()
            parts.start()
            await _chat(parts, server, proxy)
            if "remote-chat" in wanted:
                await save(parts.window, "remote-chat")
            if "remote-engines" in wanted:
                parts.window.go_to("server")
                await settle()
                _click(parts, "server.tab.engines")
                await until(lambda: not parts.services.remote.state.value.searching)
                await save(parts.window, "remote-engines")
        finally:
            await parts.close()
            await proxy.close()


async def _chat(parts: Parts, server: LlamaServer, proxy: UrgingProxy) -> None:
    """Ask about a picture and the time. The proxy stands where the server would, under its name."""
    service = parts.services.remote
    if not await service.add(proxy.address, name="Workstation"):
        raise RuntimeError(f"llama-server at {server.address} didn't answer: {service.state.value.problem}")
    parts.window.load_served(f"{proxy.address}#QwenDesk-Demo-Q8_0")
    await until(lambda: parts.engine.state.report is not None)
    parts.chat.set_thinking(True)
    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder) / "shape.png"
        ShapePicture("red", "circle", "white", 128).draw().save(picture)
        await parts.chat.send("What is in this picture?", (picture,))
        parts.window.chat_page.composer.tools.choice.chosen.emit(("current_time",))
        await parts.chat.send("What time is it?")
        await settle()


def _click(parts: Parts, name: str) -> None:
    button = find(parts, name)
    if not isinstance(button, QAbstractButton):
        raise TypeError(f"{name} isn't a button")
    button.click()
