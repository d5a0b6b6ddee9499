"""`qwendesk serve`: lets other programs use a model until it is stopped."""

import argparse
import asyncio
import json
import signal
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from qwendesk.cli.terminal import Interrupts, Terminal, check_text, is_agreed
from qwendesk.core.errors import BadOption, QwenDeskError
from qwendesk.core.failures import LoadFailure
from qwendesk.core.option_rules import parse_load_options
from qwendesk.core.options import LoadOptions
from qwendesk.core.translation import tr
from qwendesk.engines.engine_choice import preferred_engine
from qwendesk.engines.load_decision import facts_for
from qwendesk.hub.gguf import first_shard
from qwendesk.server.access import KEY_VARIABLE, as_origins, given_key
from qwendesk.server.certificates import Certificate
from qwendesk.server.served_models import ServedModels
from qwendesk.server.service import USUAL_PORT, ServerOptions, ServerState, default_key_file
from qwendesk.services import App

EXIT_STOPPED, EXIT_DECLINED = 0, 1


def add_serve_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--model", metavar="F", type=Path, help="the GGUF file to serve (default: any model on this PC)")
    add(
        "--set",
        metavar="KEY=VALUE",
        dest="assignments",
        action="append",
        default=[],
        help="with --model: set a load option, such as n_ctx=65536; repeatable",
    )
    add("--port", metavar="N", type=int, default=USUAL_PORT, help=f"0 takes a free one (default: {USUAL_PORT})")
    add(
        "--host",
        metavar="H",
        default="127.0.0.1",
        help="the address to listen at; 0.0.0.0 lets other PCs in, with TLS (default: this PC alone)",
    )
    add(
        "--key-file",
        metavar="F",
        type=Path,
        help=f"the file with the keys, one a line, with a name after it if you like; the variable {KEY_VARIABLE} "
        "replaces it (default: in the folder of the settings)",
    )
    add("--certificate", metavar="F", type=Path, help="your own certificate for TLS, as PEM (default: one made here)")
    add("--certificate-key", metavar="F", type=Path, help="its private key, as PEM")
    add(
        "--allow-origin",
        metavar="O",
        dest="origins",
        action="append",
        default=[],
        help="a web page that may use the server, such as https://example.com; repeatable",
    )
    add("--yes", action="store_true", help="let other PCs in without confirmation")
    add("--waiting", metavar="N", type=int, default=16, help="how many requests may wait (default: 16)")
    add("--json", action="store_true", help="print one line of JSON with the address and the key when it is ready")


async def serve(options: argparse.Namespace, terminal: Terminal, interrupts: Interrupts) -> int:
    """Serve until Ctrl+C or SIGTERM and return the exit status. Raise QwenDeskError if that isn't possible."""
    server_options = _server_options(options)
    model = None if options.model is None else options.model.absolute()
    if model is not None:
        await asyncio.to_thread(_check_model, model)
    if options.assignments and model is None:
        raise BadOption(tr("Bad option"), tr("--set needs --model."))
    if server_options.lets_others_in and not options.yes:
        question = tr("Other PCs can reach {0}. Who has the key can use your models. Continue? [y/N]", options.host)
        if not is_agreed(question, terminal):
            return EXIT_DECLINED
    stopped = asyncio.Event()
    interrupts.on_request(stopped.set)
    async with AsyncExitStack() as closing:
        closing.callback(_on_termination(stopped.set))
        engines = await preferred_engine()
        app = App(engines.client(), engines=engines)
        closing.push_async_callback(app.close)
        if model is not None:
            load = parse_load_options(await app.engine.options_for(model), _assignments(options.assignments))
            app.server.serve_models(ServedModels(app.engine, lambda: _value(load)))
        app.meters.service.start()
        app.game_mode.start()
        state = await app.server.start(server_options)
        _show(state, options, terminal)
        await stopped.wait()
    interrupts.is_requested = False  # for a server, Ctrl+C is how it ends well
    return EXIT_STOPPED


def _check_model(model: Path) -> None:
    """Raise QwenDeskError if the file can't be a model: it is loaded only with the first request. Blocks."""
    if not model.is_file():
        raise QwenDeskError(tr("Model not found"), tr("{0} could not be found. Check the path.", model))
    files = facts_for(LoadOptions(model=str(first_shard(model))))
    if isinstance(files, LoadFailure):
        raise QwenDeskError(files.title, files.sentence)


def _show(state: ServerState, options: argparse.Namespace, terminal: Terminal) -> None:
    if options.json:
        fingerprint = {"fingerprint": state.fingerprint} if state.fingerprint else {}
        terminal.write(json.dumps({"url": state.address, "key": state.keys[0].key, **fingerprint}) + "\n")
        return
    terminal.write(f"OpenAI      {state.address}/v1\nAnthropic   {state.address}\n")
    if state.fingerprint:
        terminal.write(f"SHA-256     {state.fingerprint}\n")
    terminal.note(tr("The key is in {0}.", _key_place(options)))
    if not state.fingerprint:
        port = state.address.rpartition(":")[2]
        terminal.note(tr("Start programs in another terminal: {0}", f"qwendesk start --port {port} claude"))
    terminal.note(tr("Press Ctrl+C to stop."))


def _key_place(options: argparse.Namespace) -> str:
    return KEY_VARIABLE if given_key() else str(options.key_file or default_key_file())


def _server_options(options: argparse.Namespace) -> ServerOptions:
    """Check the parsed arguments. Raise BadOption."""
    if not 0 <= options.port <= 65535:
        raise BadOption(tr("Bad port"), tr("--port takes a number from 0 to 65535."))
    if options.waiting < 0:
        raise BadOption(tr("Bad option"), tr("--waiting takes 0 or more."))
    if (options.certificate is None) != (options.certificate_key is None):
        raise BadOption(tr("Bad option"), tr("--certificate and --certificate-key go together."))
    certificate = None
    if options.certificate is not None:
        certificate = Certificate(options.certificate.absolute(), options.certificate_key.absolute())
    return ServerOptions(
        host=options.host,
        port=options.port,
        key_file=options.key_file.absolute() if options.key_file is not None else None,
        origins=as_origins(options.origins),
        certificate=certificate,
        most_waiting=options.waiting,
    )


def _assignments(texts: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        check_text(text, tr("An option"))
        key, equals, value = text.partition("=")
        if not equals:
            raise BadOption(tr("Bad option"), tr('--set takes KEY=VALUE, not "{0}".', text))
        found[key.strip()] = value
    return found


async def _value(load: LoadOptions) -> LoadOptions:
    return load


def _on_termination(stop: Callable[[], None]) -> Callable[[], None]:
    """Call `stop` on SIGTERM, until the returned function is called."""
    loop = asyncio.get_running_loop()
    previous = signal.signal(signal.SIGTERM, lambda *_: loop.call_soon_threadsafe(stop))

    def end() -> None:
        signal.signal(signal.SIGTERM, previous)

    return end
