"""ServerSwitch: keeps the server as the user's settings say, for the window."""

import asyncio
import itertools
import socket

import msgspec

from qwendesk.core.app_options import AppOptions
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.observed import Observed
from qwendesk.core.translation import tr
from qwendesk.server.access import KEY_VARIABLE, as_origins, given_key, renew_key
from qwendesk.server.service import PortNotUsable, ServerOptions, ServerService, default_key_file
from qwendesk.server.setups.programs import USUAL_CONTEXT, Target
from qwendesk.settings.service import SettingsService


class SwitchState(msgspec.Struct, frozen=True):
    is_busy: bool = False
    problem: str = ""
    """Reason why the server doesn't run although it should; "" if it runs or is off."""
    is_port_taken: bool = False
    """True if another port would help."""


class ServerSwitch:
    """Starts and stops the server. Call its methods on the event loop's thread."""

    def __init__(self, server: ServerService, settings: SettingsService) -> None:
        self.server, self._settings = server, settings
        self.observed = Observed(SwitchState())
        settings.subscribe(lambda options: server.allow_origins(as_origins(options.server_origins)))

    @property
    def options(self) -> AppOptions:
        return self._settings.options

    async def follow_settings(self) -> None:
        """Start or stop the server, as the settings say."""
        options = self._settings.options
        self.observed.set(SwitchState(is_busy=True))
        try:
            if options.serve:
                network_port = options.server_port + 1 if options.serve_network else None
                origins = as_origins(options.server_origins)
                await self.server.start(
                    ServerOptions(
                        port=options.server_port,
                        network_port=network_port,
                        origins=origins,
                        ffmpeg_folder=options.ffmpeg_folder,
                    )
                )
            else:
                await self.server.stop()
        except PortNotUsable:
            self.observed.set(SwitchState(problem=self._port_problem(options), is_port_taken=True))
        except QwenDeskError as error:
            self.observed.set(SwitchState(problem=error.sentence))
        else:
            self.observed.set(SwitchState())

    async def set_on(self, *, on: bool) -> None:
        self._settings.change({"serve": on})
        await self.follow_settings()

    async def set_port(self, port: int) -> None:
        """Use another port. Raise BadOption for one out of range."""
        if port != self._settings.options.server_port:
            self._settings.change({"server_port": port})
            await self.follow_settings()

    async def take_free_port(self) -> None:
        """Use a port that no program has now."""
        await self.set_port(await asyncio.to_thread(_free_port, self._settings.options.server_port))

    async def let_network_in(self, *, allowed: bool) -> None:
        """Let other PCs reach the server, or no longer."""
        self._settings.change({"serve_network": allowed})
        await self.follow_settings()

    async def renew_key(self) -> None:
        """Make a new key in place of the first one, so that programs with the old one are refused.

        Raise QwenDeskError if the key can't be changed.
        """
        if given_key():
            sentence = tr("The variable {0} has the key. Change it there, and start QwenDesk again.", KEY_VARIABLE)
            raise QwenDeskError(tr("Key not changed"), sentence)
        try:
            await asyncio.to_thread(renew_key, default_key_file())
        except OSError as error:
            sentence = tr("The new key couldn't be saved: {0}. The old one is still valid.", error.strerror or error)
            raise QwenDeskError(tr("Key not changed"), sentence) from error
        await self.follow_settings()

    def target(self) -> Target | None:
        """Return the server as programs on this PC reach it; None while it is off."""
        state = self.server.state
        if not state.is_on:
            return None
        report = self.server.models.loaded
        return Target(state.address, state.keys[0].key, report.n_ctx if report is not None else USUAL_CONTEXT)

    def _port_problem(self, options: AppOptions) -> str:
        if options.serve_network:
            ports = f"{options.server_port}, {options.server_port + 1}"
            return tr("One of the ports {0} is taken by another program, or your system doesn't allow it.", ports)
        return tr("Port {0} is taken by another program, or your system doesn't allow it.", options.server_port)


def _free_port(after: int) -> int:
    """Return the next port that is free on this PC together with the one after it. Blocks."""
    for port in itertools.chain(range(after + 1, min(after + 200, 65_534)), range(20_000, 20_200)):
        if all(_is_free(each) for each in (port, port + 1)):
            return port
    return after


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
