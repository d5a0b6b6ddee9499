"""`qwendesk start`: starts a program, such as Claude Code, that uses the running server."""

import argparse
import os
import signal
import socket
import subprocess

import httpx2
import msgspec

from qwendesk.cli.terminal import Interrupts, Terminal
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.processes import serves_port
from qwendesk.core.translation import tr
from qwendesk.server.access import KEY_VARIABLE, read_keys
from qwendesk.server.service import default_key_file
from qwendesk.server.setups.programs import BY_ID, PROGRAMS, USUAL_CONTEXT, Launch, Program, Target, launch_of
from qwendesk.settings.service import SettingsService

_LONGEST_S = 10.0


def add_start_options(parser: argparse.ArgumentParser) -> None:
    names = tuple(each.id for each in PROGRAMS if each.can_start)
    parser.add_argument("--port", metavar="N", type=int, help="the server's port (default: the one in the settings)")
    parser.add_argument("program", metavar="PROGRAM", choices=names, help=f"one of {', '.join(names)}")
    parser.add_argument("arguments", metavar="...", nargs=argparse.REMAINDER, help="arguments for the program")


def start(options: argparse.Namespace, _terminal: Terminal, _interrupts: Interrupts) -> int:
    """Run a program in this terminal and return its exit status. Raise QwenDeskError if that isn't possible."""
    program = BY_ID[options.program]
    target = _running_server(SettingsService().options.server_port if options.port is None else options.port)
    further = options.arguments[1:] if options.arguments[:1] == ["--"] else options.arguments
    with launch_of(program, target, os.environ, further) as launch:
        return _run(program, launch)


class _ListedModel(msgspec.Struct):
    max_input_tokens: int = 0


class _ModelList(msgspec.Struct):
    data: list[_ListedModel]


def _running_server(port: int) -> Target:
    """Return the server at a port of this PC. Raise QwenDeskError if QwenDesk doesn't serve there."""
    address, key = f"http://127.0.0.1:{port}", read_keys(default_key_file())[0].key
    if _is_of_others(port):
        sentence = tr(
            "The program at {0} belongs to another user of this PC, so the key wasn't sent there. Choose another port "
            "for your server, and name it with --port.",
            address,
        )
        raise _no_server(sentence)
    try:
        answer = httpx2.get(
            f"{address}/v1/models", headers={"Authorization": f"Bearer {key}"}, timeout=_LONGEST_S, trust_env=False
        )
        if answer.status_code == httpx2.codes.UNAUTHORIZED:
            raise _no_server(tr("The server at {0} has another key. Put its key into {1}.", address, KEY_VARIABLE))
        answer.raise_for_status()
        models = decode_json(answer.content, _ModelList).data
    except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
        sentence = tr(
            "No server runs at {0}. Switch it on on QwenDesk's Server page, or run qwendesk serve in another terminal.",
            address,
        )
        raise _no_server(sentence) from error
    except (httpx2.HTTPError, httpx2.InvalidURL, msgspec.DecodeError) as error:
        raise _no_server(tr("{0} isn't QwenDesk's server. Name its port with --port.", address)) from error
    return Target(address, key, max((each.max_input_tokens for each in models), default=0) or USUAL_CONTEXT)


def _is_of_others(port: int) -> bool:
    """Return whether another user's process listens at a port. Any user can take one before the server does."""
    if serves_port(port):
        return False
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=_LONGEST_S):
            return True
    except OSError:
        return False


def _no_server(sentence: str) -> QwenDeskError:
    return QwenDeskError(tr("No server"), sentence)


def _run(program: Program, launch: Launch) -> int:
    """Wait for the program, which gets Ctrl+C from the terminal itself."""
    previous = signal.signal(signal.SIGINT, lambda *_: None)  # an exception here could lose the exit status
    try:
        status = subprocess.Popen(launch.command, env=launch.environment).wait()
    except OSError as error:
        sentence = tr("{0} couldn't be started: {1}.", program.name, error.strerror or error)
        raise QwenDeskError(tr("Program not started"), sentence) from error
    finally:
        signal.signal(signal.SIGINT, previous)
    return status if status >= 0 else 128 - status
