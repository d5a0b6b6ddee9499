"""The guide's picture of the Server page."""

from collections.abc import Collection

from qwendesk.app.parts import build
from qwendesk.core.options import LoadOptions
from qwendesk.engine.state import Phase
from qwendesk.meters.services import MeterSource
from qwendesk.services import Doubles
from tests.fakes.engine import decide_by_default
from tests.fakes.gaming_pc import OPTIONS, GamingPc, engine_on, estimated, reader_of
from tools.screenshots.made_up_server import made_up_requests, made_up_states
from tools.screenshots.stage import save, settle, until

_WINDOW = (1080, 820)


async def server(_wanted: Collection[str]) -> None:
    """The server is on, and programs use it."""
    pc = GamingPc()
    source = MeterSource(reader=reader_of(pc), estimate_load=estimated, platform="win32")
    parts = build(engine_on(pc), decide=decide_by_default, doubles=Doubles(meters=source))
    services, window = parts.services, parts.window
    try:
        window.resize(*_WINDOW)
        window.show()
        parts.tasks.start(parts.engine.load(LoadOptions(model=OPTIONS.model)))
        await until(lambda: parts.engine.state.phase is Phase.READY)
        for _ in range(3):
            await services.meters.service.sample()
        window.show_page("server")
        await services.server_switch.set_on(on=True)
        await settle()  # the page looks for programs by itself
        services.setups.observed.set(made_up_states(services.setups.observed.value))
        services.server.requests.observed.set(made_up_requests())
        await save(window, "server")
        services.server.requests.observed.set(())
    finally:
        await parts.close()
