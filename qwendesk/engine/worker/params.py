"""Convert DecidedOptions to llama.cpp's parameter structs."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Any

import llama_cpp.llama_cpp as C
import psutil
from llama_cpp import mtmd_cpp

from qwendesk.core.devices import default_gpus
from qwendesk.core.errors import BadOption
from qwendesk.core.model_facts import EXPERT_TENSORS
from qwendesk.core.options import CacheType, DecidedOptions
from qwendesk.core.rope_scaling import reached_context
from qwendesk.core.translation import mark
from qwendesk.engine.worker import devices

# Type numbers of ggml. llama-cpp-python has no name for bf16.
CACHE_TYPES: dict[CacheType, int] = {
    "f32": C.GGML_TYPE_F32,
    "f16": C.GGML_TYPE_F16,
    "bf16": 30,
    "q8_0": C.GGML_TYPE_Q8_0,
    "q5_1": C.GGML_TYPE_Q5_1,
    "q5_0": C.GGML_TYPE_Q5_0,
    "q4_1": C.GGML_TYPE_Q4_1,
    "q4_0": C.GGML_TYPE_Q4_0,
    "iq4_nl": C.GGML_TYPE_IQ4_NL,
}

_SPLIT_MODES = {"none": 0, "layer": 1, "row": 2, "tensor": 3}
# mlock is mmap with mlock: locking a private copy would need twice the memory while loading.
_LOAD_MODES = {"none": 0, "mmap": 1, "mlock": 3}
_LAZY_MODES = {"off": 0, "auto": 1, "on": 2}
_FLASH_ATTENTION = {"auto": -1, "off": 0, "on": 1}
_ROPE_SCALING = {"auto": -1, "none": 0, "linear": 1, "yarn": 2}
# Values of ggml_numa_strategy.
_NUMA = {"off": 0, "distribute": 1, "isolate": 2, "numactl": 3}
_ALL_LAYERS = 10_000

# Called with the progress, from 0 to 1. Returning False stops the load.
ProgressCallback = Callable[[float], bool]


class _BufferOverride(ctypes.Structure):
    """struct llama_model_tensor_buft_override, which is opaque in llama-cpp-python."""

    _fields_ = [("pattern", ctypes.c_char_p), ("buft", ctypes.c_void_p)]


class ModelParams:
    """llama_model_params and everything that it points to. Keep this object until the load has finished."""

    def __init__(self, options: DecidedOptions, progress: ProgressCallback) -> None:
        params = C.llama_model_default_params()
        params.n_gpu_layers = gpu_layers(options)
        params.split_mode = _SPLIT_MODES[options.split_mode]
        params.load_mode = _LOAD_MODES[options.load_mode]
        _set_lazy_mode(params, options)
        params.main_gpu = options.main_gpu
        params.check_tensors = options.check_tensors
        params.load_mtp = options.speculative == "mtp" and not options.draft_model
        self._progress = C.llama_progress_callback(lambda fraction, _data: progress(fraction))
        params.progress_callback = self._progress
        self._devices = _device_list(options.devices)
        params.devices = ctypes.cast(self._devices, ctypes.c_void_p) if self._devices else None
        self._overrides = _overrides(options)
        params.tensor_buft_overrides = ctypes.cast(self._overrides, ctypes.c_void_p) if self._overrides else None
        self._split = _split(options.tensor_split)
        if self._split:
            params.tensor_split = self._split
        self._kv = _kv_overrides(options.kv_overrides)
        if self._kv:
            params.kv_overrides = self._kv
        self.struct = params


def context_params(options: DecidedOptions, n_ctx_train: int) -> C.llama_context_params:
    """Return the context's parameters. Raise BadOption for combinations that the engine refuses or crashes on."""
    quantised_v = options.type_v not in ("f16", "bf16", "f32")
    if quantised_v and options.flash_attn == "off":
        raise BadOption(
            mark("These options conflict"), mark("A V cache of type {0} needs flash attention."), options.type_v
        )
    n_ctx = options.n_ctx or n_ctx_train
    if n_ctx > reached_context(options, n_ctx_train):
        raise BadOption(
            mark("Context too long"),
            mark("With these RoPE options, the model reaches {0} tokens. Choose a shorter context."),
            f"{reached_context(options, n_ctx_train):,}",
        )
    params: C.llama_context_params = C.llama_context_default_params()
    params.n_ctx = n_ctx
    params.n_ubatch = min(options.n_ubatch, options.n_batch)
    params.n_batch = options.n_batch
    params.n_seq_max = 1
    # Only the last token of a prompt needs logits. Those of a whole batch would take n_ubatch * vocabulary * 4 bytes,
    # which is 485 MiB of video memory for Qwen3.5.
    n_drafts = most_drafts(options)
    params.n_outputs_max = 1 + n_drafts
    # Snapshots of the recurrent state, one for each token that may have to be taken back.
    params.n_rs_seq = n_drafts
    params.n_threads = threads(options)
    params.n_threads_batch = options.n_threads_batch or params.n_threads
    params.rope_scaling_type = _ROPE_SCALING[options.rope_scaling]
    params.rope_freq_base = options.rope_freq_base
    params.rope_freq_scale = options.rope_freq_scale
    params.yarn_ext_factor = options.yarn_ext_factor
    params.yarn_attn_factor = options.yarn_attn_factor
    params.yarn_beta_fast = options.yarn_beta_fast
    params.yarn_beta_slow = options.yarn_beta_slow
    params.yarn_orig_ctx = options.yarn_orig_ctx
    params.flash_attn_type = _FLASH_ATTENTION[options.flash_attn]
    params.type_k = CACHE_TYPES[options.type_k]
    params.type_v = CACHE_TYPES[options.type_v]
    params.offload_kqv = options.offload_kqv
    params.op_offload = options.op_offload
    params.swa_full = options.swa_full
    params.no_perf = True
    return params


def most_drafts(options: DecidedOptions) -> int:
    """Return how many tokens may be drafted at once: the engine needs an evaluation batch of two tokens more."""
    if options.speculative == "off":
        return 0
    return max(0, min(options.draft_n_max, min(options.n_ubatch, options.n_batch) - 2))


def draft_params(params: C.llama_context_params, target: C.llama_context_p) -> C.llama_context_params:
    """Return the parameters of the draft head's context, which belongs to the context `target` made with `params`."""
    params.ctx_type = C.LLAMA_CONTEXT_TYPE_MTP
    params.ctx_other = target
    params.n_outputs_max = 1
    params.n_rs_seq = 0
    return params


def vision_params(options: DecidedOptions) -> mtmd_cpp.mtmd_context_params:
    """Return the vision encoder's parameters.

    Its warm-up only reserves memory, so that a lack of video memory shows during the load and not later.
    """
    params: mtmd_cpp.mtmd_context_params = mtmd_cpp.mtmd_context_params_default()
    params.use_gpu = options.vision == "gpu" and options.devices != ("none",)
    params.device = ctypes.c_void_p(_vision_device(options) if params.use_gpu else None)
    params.print_timings = False
    params.n_threads = threads(options)
    params.flash_attn_type = _FLASH_ATTENTION[options.flash_attn]
    params.warmup = True
    params.image_min_tokens = options.image_min_tokens or -1
    params.image_max_tokens = options.image_max_tokens or -1
    return params


def _vision_device(options: DecidedOptions) -> int | None:
    """Return the handle of the first GPU that the model uses; None if there is none.

    Without a device, mtmd takes the first GPU of the PC, even if the options name others (clip_ctx in llama.cpp).
    """
    known = devices.list_devices()
    by_name = {device.name.lower(): device for device in known if device.kind in ("gpu", "igpu")}
    named = tuple(by_name[name.lower()] for name in options.devices if name.lower() in by_name)
    gpus = named if options.devices else default_gpus(known)
    chosen = gpus[options.main_gpu :] if options.split_mode == "none" else gpus
    return devices.device_handle(chosen[0].name) if chosen else None


def numa_strategy(options: DecidedOptions) -> int:
    return _NUMA[options.numa]


def threads(options: DecidedOptions) -> int:
    """Return the number of threads for decoding: the option's, else the number of physical cores."""
    return options.n_threads or psutil.cpu_count(logical=False) or os.cpu_count() or 1


def gpu_layers(options: DecidedOptions) -> int:
    return _ALL_LAYERS if options.n_gpu_layers == "all" else options.n_gpu_layers


def _set_lazy_mode(params: C.llama_model_params, options: DecidedOptions) -> None:
    """Set how tables are read. An engine older than llama.cpp b10830 has no such parameter and keeps them in RAM."""
    if any(name == "lazy_mode" for name, *_ in params._fields_):
        params.lazy_mode = _LAZY_MODES[options.lazy_mode]
    elif options.lazy_mode == "on":
        raise BadOption(
            mark("This engine is too old"),
            mark(
                "The installed engine can't read tables from disk. Set Tables on disk to Auto or Off, or install a "
                "newer engine."
            ),
        )


def _device_list(names: tuple[str, ...]) -> ctypes.Array[ctypes.c_void_p] | None:
    """Return a NULL-terminated array of device handles, or None for all devices. The name "none" alone means no GPU."""
    if not names:
        return None
    handles = [] if names == ("none",) else [devices.device_handle(name) for name in names]
    return (ctypes.c_void_p * (len(handles) + 1))(*handles, None)


def _overrides(options: DecidedOptions) -> ctypes.Array[_BufferOverride] | None:
    """Return the NULL-terminated tensor placements: the user's patterns, then those of expert layers on the CPU."""
    pairs: list[tuple[str, int]] = []
    for text in options.override_tensor:
        pattern, separator, device = text.rpartition("=")
        if not separator or not pattern:
            raise BadOption(mark("Invalid tensor placement"), mark('"{0}" must look like PATTERN=DEVICE.'), text)
        pairs.append((pattern, devices.buffer_type(device)))
    if options.n_cpu_moe:
        cpu = devices.buffer_type("CPU")
        pairs += [(rf"blk\.{layer}\.{EXPERT_TENSORS}", cpu) for layer in range(options.n_cpu_moe)]
    if not pairs:
        return None
    array = (_BufferOverride * (len(pairs) + 1))()
    for slot, (pattern, buft) in zip(array, pairs, strict=False):
        slot.pattern, slot.buft = pattern.encode(), buft
    return array


def _split(shares: tuple[float, ...]) -> ctypes.Array[ctypes.c_float] | None:
    if not shares:
        return None
    array: ctypes.Array[ctypes.c_float] = (ctypes.c_float * C.llama_max_devices())()
    if len(shares) > len(array):
        raise BadOption(
            mark("Invalid split"), mark("There are {0} shares for at most {1} devices."), len(shares), len(array)
        )
    for index, share in enumerate(shares):
        array[index] = share
    return array


def _kv_overrides(texts: tuple[str, ...]) -> ctypes.Array[C.llama_model_kv_override] | None:
    """Parse the header values to replace, each given as KEY=TYPE:VALUE. An entry without a key ends the array."""
    if not texts:
        return None
    array = (C.llama_model_kv_override * (len(texts) + 1))()
    for slot, text in zip(array, texts, strict=False):
        key, _, typed = text.partition("=")
        kind, _, value = typed.partition(":")
        if not key or not value or len(key) > 127 or len(value) > 127:
            raise BadOption(mark("Invalid header override"), mark('"{0}" must look like KEY=TYPE:VALUE.'), text)
        slot.key = key.encode()
        _set_override(slot, kind, value, text)
    return array


def _set_override(slot: Any, kind: str, value: str, text: str) -> None:
    try:
        if kind == "int":
            slot.tag, slot.value.val_i64 = C.LLAMA_KV_OVERRIDE_TYPE_INT, int(value)
        elif kind == "float":
            slot.tag, slot.value.val_f64 = C.LLAMA_KV_OVERRIDE_TYPE_FLOAT, float(value)
        elif kind == "bool" and value in ("true", "false"):
            slot.tag, slot.value.val_bool = C.LLAMA_KV_OVERRIDE_TYPE_BOOL, value == "true"
        elif kind == "str":
            slot.tag, slot.value.val_str = C.LLAMA_KV_OVERRIDE_TYPE_STR, value.encode()
        else:
            raise ValueError(kind)
    except ValueError:
        raise BadOption(
            mark("Invalid header override"), mark('"{0}": TYPE must be int, float, bool (true or false) or str.'), text
        ) from None
