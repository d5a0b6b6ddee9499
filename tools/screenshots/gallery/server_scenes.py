"""The Server page: off, on with programs and requests, with other PCs let in, and with its port taken."""

import socket

from tools.screenshots.gallery.room import Room
from tools.screenshots.made_up_server import made_up_requests, made_up_states
from tools.screenshots.stage import settle, until

_PORT = 28_765


async def this_pc_serves(room: Room) -> None:
    services = room.parts.services
    services.settings.change({"server_port": _PORT})
    services.setups._environment = {"PATH": ""}
    await room.load()
    room.window.show_page("server")
    await room.shoot("server-off")
    with socket.socket() as other:
        other.bind(("127.0.0.1", _PORT))
        other.listen()
        room.click("serve.on")
        await until(lambda: bool(services.server_switch.observed.value.problem))
        await room.shoot("server-port-taken")
    room.click("serve.on")
    await services.server_switch.follow_settings()
    await services.server_switch.set_on(on=True)
    await settle()  # the page looks for programs by itself
    services.setups.observed.set(made_up_states(services.setups.observed.value))
    services.server.requests.observed.set(made_up_requests())
    await settle()
    await room.shoot("server-on")
    await room.shoot("server-setup", lambda: room.click("serve.program.claude.setup"))
    await services.server_switch.let_network_in(allowed=True)
    await settle()
    await room.shoot("server-network")
    await services.server_switch.set_on(on=False)
    services.server.requests.observed.set(())
