"""Ask the engine how much memory a load would take, without reading weights or allocating memory (no_alloc).

Recurrent states and compute buffers come from the lines that llama.cpp logs when it creates the context. Weights, and
the share of each device in the KV cache, come from llama.cpp's fit report. That is a C++ function that not every engine
folder has: without it, weights_bytes are 0 and the caller calculates them from the file's header.
"""

import ctypes
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

import llama_cpp
import llama_cpp.llama_cpp as C

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.options import DecidedOptions
from qwendesk.engine.dry_run_protocol import Estimated, decode_estimate
from qwendesk.engine.protocol import Allocation
from qwendesk.engine.worker import params
from qwendesk.engine.worker.channel import Channel
from qwendesk.engine.worker.devices import buffer_names, ggml
from qwendesk.engine.worker.log import EngineLog, read_allocations

_MIB = 1024**2
_STDOUT = 1
_KV_SIZE = re.compile(r"llama_kv_cache: size =\s*([\d.]+) MiB")
_FIT_LIBRARIES = {"win32": "llama-common.dll", "darwin": "libllama-common.dylib"}
# The mangled names of common_fit_print, in the Itanium and the Microsoft C++ ABI.
_FIT_SYMBOLS = (
    "_Z16common_fit_printPKcP18llama_model_paramsP20llama_context_params",
    "?common_fit_print@@YAXPEBDPEAUllama_model_params@@PEAUllama_context_params@@@Z",
)


class CannotEstimate(Exception):
    """The engine refused the model or the options. The message says why."""


def answer(channel: Channel, requests: BinaryIO) -> None:
    """Read one Estimate request and send an Estimated event."""
    log = EngineLog()
    log.install()
    ggml()
    C.llama_backend_init()
    request = decode_estimate(requests.readline())
    try:
        channel.send(Estimated(id=request.id, allocations=estimate(request.options, log)))
    except CannotEstimate as problem:
        channel.send(Estimated(id=request.id, problem=str(problem)))


def estimate(options: DecidedOptions, log: EngineLog) -> tuple[Allocation, ...]:
    """Return the bytes that each device needs. weights_bytes are 0 if the engine cannot report them.

    Vision and a draft head in a file of its own are left out. Raise CannotEstimate if the engine refuses. The process
    should exit afterwards, because its log settings change.
    """
    mark = log.mark()
    settings, context = _without_data(options)
    model = C.llama_model_load_from_file(options.model.encode(), settings.struct)
    if not model:
        raise CannotEstimate(_last_words(log.since(mark), "the engine could not read the model"))
    n_bytes = C.llama_model_size(model)
    made = C.llama_init_from_model(model, context)
    if made:
        if options.speculative == "mtp" and C.llama_model_n_layer_nextn(model):
            head = C.llama_init_from_model(model, params.draft_params(context, made))
            if head:
                C.llama_free(head)
        C.llama_free(made)
    C.llama_model_free(model)
    lines = log.since(mark)
    if not made:
        raise CannotEstimate(_last_words(lines, "the engine could not plan the context"))
    return _joined(read_allocations(lines, buffer_names()), lines, n_bytes, _reported(options))


def _without_data(options: DecidedOptions) -> tuple[params.ModelParams, C.llama_context_params]:
    try:
        settings = params.ModelParams(options, lambda _fraction: True)
        settings.struct.no_alloc = True
        settings.struct.load_mode = 0
        return settings, params.context_params(options, options.n_ctx)
    except QwenDeskError as error:
        raise CannotEstimate(error.sentence) from error


def _last_words(lines: Iterable[str], otherwise: str) -> str:
    said = [line for line in lines if "error" in line.lower() or "failed" in line.lower()]
    return said[-1].strip() if said else otherwise


def _reported(options: DecidedOptions) -> dict[str, tuple[int, int]]:
    """Return the bytes of weights, and of KV cache and recurrent state together, by device, rounded down to whole MiB.

    All host buffers count as "CPU". The result is empty if the engine has no fit report.
    """
    report = _fit_report()
    if report is None:
        return {}
    settings, context = _without_data(options)
    lines = _printed(lambda: report(options.model.encode(), ctypes.byref(settings.struct), ctypes.byref(context)))
    found = {}
    for line in lines:
        device, *numbers = line.split()
        if len(numbers) == 3 and all(number.isdigit() for number in numbers):
            found["CPU" if device == "Host" else device] = (int(numbers[0]) * _MIB, int(numbers[1]) * _MIB)
    return found


def _fit_report() -> Callable[..., object] | None:
    name = _FIT_LIBRARIES.get(sys.platform, "libllama-common.so")
    package = Path(llama_cpp.__file__).parent
    chosen = os.environ.get("LLAMA_CPP_LIB_PATH")
    folders = (package / "lib", package.parent / "lib", package.parent / "bin")
    for folder in (*((Path(chosen),) if chosen else ()), *folders):
        if not (folder / name).exists():
            continue
        try:
            library = ctypes.CDLL(str(folder / name))
        except OSError:
            continue
        for symbol in _FIT_SYMBOLS:
            report = getattr(library, symbol, None)
            if report is not None:
                report.argtypes, report.restype = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p], None
                return report  # type: ignore[no-any-return]
    return None


def _printed(call: Callable[[], object]) -> list[str]:
    """Return the lines that native code prints to standard output while `call` runs."""
    kept = os.dup(_STDOUT)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), _STDOUT)
        try:
            call()
            _flush_c()
        finally:
            os.dup2(kept, _STDOUT)
            os.close(kept)
        file.seek(0)
        return file.read().decode("utf-8", "replace").splitlines()


def _flush_c() -> None:
    """C keeps its own buffer of standard output."""
    runtime = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
    runtime.fflush(None)


def _weights_of(name: str, reported: dict[str, tuple[int, int]], not_elsewhere: int) -> int:
    """Return the bytes of weights on device `name`: for "CPU" at least `not_elsewhere`, the rest of the model.

    The report may give more: an output matrix that is shared with the token embeddings is on the GPU and in RAM.
    """
    weights = reported.get(name, (0, 0))[0]
    return max(weights, not_elsewhere) if name == "CPU" and reported else weights


def _joined(
    read: tuple[Allocation, ...], lines: tuple[str, ...], model_bytes: int, reported: dict[str, tuple[int, int]]
) -> tuple[Allocation, ...]:
    """Combine the log and the fit report into one Allocation per device.

    The log has recurrent states and compute buffers by device, but only the total of the KV cache. The report has KV
    cache and recurrent state together, and omits weights that the CPU backend repacks: these are what is left of the
    model after all other devices.
    """
    logged = {row.device: row for row in read}
    kv_total = sum(round(float(found[1]) * _MIB) for line in lines if (found := _KV_SIZE.match(line)))
    names = tuple(dict.fromkeys((*logged, *reported))) or ("CPU",)
    recurrent = {name: logged[name].recurrent_bytes if name in logged else 0 for name in names}
    shares = {name: max(reported.get(name, (0, 0))[1] - recurrent[name] + _MIB, 0) for name in names}
    shares = {name: share if share > 2 * _MIB or len(names) == 1 else 0 for name, share in shares.items()}
    elsewhere = sum(weights for name, (weights, _) in reported.items() if name != "CPU")
    return tuple(
        Allocation(
            name,
            weights_bytes=_weights_of(name, reported, model_bytes - elsewhere),
            kv_bytes=kv_total * shares[name] // max(sum(shares.values()), 1),
            recurrent_bytes=recurrent[name],
            compute_bytes=logged[name].compute_bytes if name in logged else 0,
        )
        for name in names
    )
