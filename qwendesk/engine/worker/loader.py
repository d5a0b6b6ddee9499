"""Loading a model step by step, and the session that is left when it worked."""

from __future__ import annotations

import contextlib
import ctypes
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import llama_cpp.llama_cpp as C
import msgspec
from llama_cpp import mtmd_cpp as M

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.options import LoadOptions
from qwendesk.engine.protocol import LoadReport, TemplateAbilities
from qwendesk.engine.worker import params
from qwendesk.engine.worker.allocations import read_allocations, with_vision_weights
from qwendesk.engine.worker.cache import PromptCache
from qwendesk.engine.worker.log import EngineLog
from qwendesk.engine.worker.memory import ContextMemory
from qwendesk.engine.worker.model import Model
from qwendesk.engine.worker.prompt import Vocabulary
from qwendesk.engine.worker.resuming import RecentAnswers
from qwendesk.engine.worker.template import BUILTIN_CHATML, ChatTemplate, probe_abilities
from qwendesk.engine.worker.vision import Vision

Stage = Literal["options", "weights", "context", "vision", "template", "lora", "cancelled"]
Progress = Callable[[Literal["weights", "context", "vision", "template"], float], None]
_MIB = 1024**2
_WEIGHTS_SHARE = 0.9
"""Share of the load's progress that reading the weights gets."""


class LoadError(Exception):
    """A load ended at `stage`; what the engine logged since its start is attached by the caller."""

    def __init__(self, stage: Stage, message: str) -> None:
        super().__init__(message)
        self.stage = stage


class Session(msgspec.Struct, frozen=True, eq=False):
    """A loaded model with all that serves it."""

    model: Model
    vision: Vision | None
    template: ChatTemplate
    vocabulary: Vocabulary
    cache: PromptCache
    report: LoadReport
    recent: RecentAnswers = msgspec.field(default_factory=RecentAnswers)

    def close(self) -> None:
        if self.vision is not None:
            self.vision.close()
        self.model.close()

    def marker_ids(self) -> frozenset[int]:
        """Tokens that are markup and never a text's own."""
        known = {**self.vocabulary.control, **self.vocabulary.user_defined}
        return frozenset(token for text, token in known.items() if not text.isspace())

    def special(self, text: str) -> int | None:
        """The id of a control or user-defined token; None when `text` is not one token."""
        return self.vocabulary.user_defined.get(text, self.vocabulary.control.get(text))


def load(options: LoadOptions, log: EngineLog, progress: Progress, is_cancelled: Callable[[], bool]) -> Session:
    """Raises LoadError; nothing stays allocated then."""
    started, mark = time.monotonic(), log.mark()
    with contextlib.ExitStack() as undo:
        model = _load_model(options, progress, is_cancelled)
        undo.callback(model.close)
        _add_adapters(options, model)
        progress("vision", _WEIGHTS_SHARE)
        _stop_if(is_cancelled())
        budget_bytes = options.cache_budget_mib * _MIB
        vision = _load_vision(options, model, budget_bytes // 4)
        if vision is not None:
            undo.callback(vision.close)
        progress("template", 0.97)
        _stop_if(is_cancelled())
        vocabulary = model.vocabulary()
        template, abilities = _template(options, model)
        cache = PromptCache(
            ContextMemory(model), rewinds_freely=model.rewinds_freely, budget_bytes=budget_bytes - budget_bytes // 4
        )
        report = _report(
            options, model, vocabulary, abilities, vision is not None, log.since(mark), time.monotonic() - started
        )
        undo.pop_all()
    return Session(model, vision, template, vocabulary, cache, report)


def _stop_if(cancelled: bool) -> None:
    if cancelled:
        raise LoadError("cancelled", "the load was cancelled")


def _load_model(options: LoadOptions, progress: Progress, is_cancelled: Callable[[], bool]) -> Model:
    def weights_read(fraction: float) -> bool:
        progress("weights", fraction * _WEIGHTS_SHARE)
        return not is_cancelled()

    try:
        settings = params.ModelParams(options, weights_read)
    except QwenDeskError as error:
        raise LoadError("options", error.sentence) from error
    C.llama_numa_init(params.numa_strategy(options))
    handle = C.llama_model_load_from_file(options.model.encode(), settings.struct)
    _stop_if(is_cancelled())
    if not handle:
        raise LoadError("weights", "the engine could not load the model")
    progress("context", _WEIGHTS_SHARE)
    try:
        ctx = C.llama_init_from_model(handle, params.context_params(options, C.llama_model_n_ctx_train(handle)))
    except QwenDeskError as error:
        C.llama_model_free(handle)
        raise LoadError("options", error.sentence) from error
    if not ctx:
        C.llama_model_free(handle)
        raise LoadError("context", "the engine could not create the context")
    return Model(handle, ctx)


def _add_adapters(options: LoadOptions, model: Model) -> None:
    """LoRA files, FILE or FILE=SCALE each; the model owns them afterwards."""
    if not options.lora:
        return
    adapters = (C.llama_adapter_lora_p_ctypes * len(options.lora))()
    scales = (ctypes.c_float * len(options.lora))()
    for index, text in enumerate(options.lora):
        path, _, scale = text.rpartition("=") if "=" in text and not Path(text).exists() else (text, "", "1")
        adapter = C.llama_adapter_lora_init(model.handle, path.encode())
        if not adapter:
            raise LoadError("lora", f"the LoRA adapter {path} could not be loaded")
        adapters[index] = adapter
        try:
            scales[index] = float(scale)
        except ValueError:
            raise LoadError("options", f'"{text}": the scale after = must be a number.') from None
    if C.llama_set_adapters_lora(model.ctx, adapters, len(options.lora), scales) != 0:
        raise LoadError("lora", "the engine refused the LoRA adapters")


def _load_vision(options: LoadOptions, model: Model, budget_bytes: int) -> Vision | None:
    if not options.mmproj or options.vision == "off":
        return None
    handle = M.mtmd_init_from_file(options.mmproj.encode(), model.handle, params.vision_params(options))
    if not handle:
        raise LoadError("vision", "the engine could not load the picture file (mmproj)")
    if not M.mtmd_support_vision(handle):
        M.mtmd_free(handle)
        raise LoadError("vision", "the mmproj file has no vision encoder")
    return Vision(handle, model, budget_bytes)


def _template(options: LoadOptions, model: Model) -> tuple[ChatTemplate, TemplateAbilities]:
    """The file's, else the model's, else the built-in one; a template that cannot run is replaced, with a note."""
    bos, eos = (_token_text(model, C.llama_vocab_bos), _token_text(model, C.llama_vocab_eos))
    note = "the model has no chat template"
    candidates: list[tuple[Literal["model", "file"], str]] = []
    if options.chat_template_file:
        try:
            candidates.append(("file", Path(options.chat_template_file).read_text("utf-8")))
        except (OSError, UnicodeDecodeError) as error:
            raise LoadError("options", f"The chat template file cannot be read: {error}.") from error
    elif source := model.meta("tokenizer.chat_template"):
        candidates.append(("model", source))
    for origin, source in candidates:
        try:
            template = ChatTemplate(source, bos=bos, eos=eos)
            return template, probe_abilities(template, origin)
        except QwenDeskError as error:
            if origin == "file":
                raise LoadError("template", error.sentence) from error
            note = f"the model's chat template cannot be used: {error.sentence}"
    template = ChatTemplate(BUILTIN_CHATML, bos=bos, eos=eos)
    return template, msgspec.structs.replace(probe_abilities(template, "builtin"), note=note)


def _token_text(model: Model, which: Callable[[C.llama_vocab_p], int]) -> str:
    token = which(model.vocab)
    text = C.llama_vocab_get_text(model.vocab, token) if token >= 0 else None
    return text.decode("utf-8", "replace") if text else ""


def _report(
    options: LoadOptions, model: Model, vocabulary: Vocabulary, abilities: TemplateAbilities, can_see: bool,
    lines: tuple[str, ...], load_s: float,
) -> LoadReport:  # fmt: skip
    allocations = read_allocations(lines)
    if can_see:
        device = next((row.device for row in allocations if row.vision_bytes), "CPU")
        allocations = with_vision_weights(allocations, device, Path(options.mmproj).stat().st_size)
    special = {**vocabulary.control, **vocabulary.user_defined}
    thinks = {"<think>", "</think>"} <= special.keys()
    return LoadReport(
        options=options,
        name=model.meta("general.name") or Path(options.model).stem,
        architecture=model.meta("general.architecture"),
        n_params=C.llama_model_n_params(model.handle),
        weights_bytes=C.llama_model_size(model.handle),
        n_ctx=model.n_ctx,
        n_ctx_train=C.llama_model_n_ctx_train(model.handle),
        n_layers=C.llama_model_n_layer(model.handle),
        n_vocab=model.n_vocab,
        is_hybrid=bool(C.llama_model_is_hybrid(model.handle)),
        can_think=thinks and abilities.enable_thinking,
        can_see=can_see,
        template=abilities,
        allocations=allocations,
        special_tokens=special,
        load_s=load_s,
    )
