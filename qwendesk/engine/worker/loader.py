"""Load a model step by step into a session."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.metadata
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import llama_cpp.llama_cpp as C
import msgspec
import psutil
from llama_cpp import mtmd_cpp as M

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.generation_options import ChatFormat, GenerationOptions
from qwendesk.core.input_files import NotRegularFile, open_regular, read_bounded
from qwendesk.core.model_facts import is_trained_to_chat
from qwendesk.core.option_rules import lora_adapter
from qwendesk.core.options import DecidedOptions
from qwendesk.core.presets import read_recommended
from qwendesk.core.translation import mark
from qwendesk.engine.protocol import LoadReport, TemplateAbilities
from qwendesk.engine.worker import params
from qwendesk.engine.worker.cache import ContextMemory, PromptCache
from qwendesk.engine.worker.chat_states import ChatStates, fingerprint_of
from qwendesk.engine.worker.devices import buffer_names
from qwendesk.engine.worker.drafts import DraftGate
from qwendesk.engine.worker.engine_calls import own_table
from qwendesk.engine.worker.log import EngineLog, read_allocations, with_vision_weights
from qwendesk.engine.worker.model import LoadedModel
from qwendesk.engine.worker.mtp_head import load_head
from qwendesk.engine.worker.prompt import Vocabulary
from qwendesk.engine.worker.template import BUILTIN_CHATML, ChatTemplate, probe_abilities
from qwendesk.engine.worker.template_builtin import FORMATS, TurnMarks, usable_formats
from qwendesk.engine.worker.threads import Threads
from qwendesk.engine.worker.vision import Vision
from qwendesk.engine.worker.written_answers import RecentAnswers, Spelling, WrittenAnswers

Stage = Literal["options", "weights", "context", "vision", "template", "lora", "cancelled"]
Progress = Callable[[Literal["weights", "context", "vision", "template"], float], None]
_MIB = 1024**2
# RAM that chat states leave free.
_LEFT_TO_SYSTEM = 2048 * _MIB
# How many texts keep their tokens: every turn sends the whole chat again, and most of it was tokenized before.
_REMEMBERED_TEXTS = 4096
# The longest known chat templates have about 20 KB.
_MAX_TEMPLATE_BYTES = _MIB
# The share of reading the weights in the progress of a load.
_WEIGHTS_SHARE = 0.9


class LoadError(Exception):
    """A load failed at `stage`. The caller adds the lines that the engine logged since the load began."""

    def __init__(self, stage: Stage, message: str, *values: object) -> None:
        """`message` is in English, with {0}, {1}, ... for `values`; the app translates it."""
        super().__init__(message.format(*values) if values else message)
        self.stage, self.message, self.values = stage, message, tuple(map(str, values))


class ClientMemory(msgspec.Struct, frozen=True, eq=False):
    """The memory of one client's requests, beside the states of its chats."""

    vocabulary: Vocabulary
    """The model's, which remembers the tokens of texts."""
    recent: RecentAnswers
    written: WrittenAnswers

    @staticmethod
    def new(vocabulary: Vocabulary) -> ClientMemory:
        tokenize = functools.lru_cache(maxsize=_REMEMBERED_TEXTS)(vocabulary.tokenize)
        return ClientMemory(msgspec.structs.replace(vocabulary, tokenize=tokenize), RecentAnswers(), WrittenAnswers())


class Session(msgspec.Struct, frozen=True, eq=False):
    """A loaded model with everything that is needed to serve requests."""

    model: LoadedModel
    vision: Vision | None
    templates: Mapping[ChatFormat | Literal[""], ChatTemplate]
    """The template by "" if it is the model's own or that of a file, else the built-in ones that suit the model."""
    vocabulary: Vocabulary
    cache: PromptCache
    states: ChatStates
    report: LoadReport
    threads: Threads
    gate: DraftGate = msgspec.field(default_factory=DraftGate)
    memories: dict[str, ClientMemory] = msgspec.field(default_factory=dict)
    """By client, of which there are as many as the server has keys."""

    def close(self) -> None:
        if self.vision is not None:
            self.vision.close()
        self.model.close()

    def memory_of(self, client: str) -> ClientMemory:
        """Return what is remembered of the requests of `client`."""
        if client not in self.memories:
            self.memories[client] = ClientMemory.new(self.vocabulary)
        return self.memories[client]

    def template_for(self, options: GenerationOptions) -> ChatTemplate:
        return self.templates[self._format(options)]

    def turn_marks(self, options: GenerationOptions) -> TurnMarks | None:
        """Return the marks of the built-in template; None if there is another template."""
        chosen = self._format(options)
        return FORMATS[chosen] if chosen else None

    def _format(self, options: GenerationOptions) -> ChatFormat | Literal[""]:
        usable = self.report.template.formats
        if not usable:
            return ""
        return options.chat_format if options.chat_format in usable else usable[0]

    def marker_ids(self) -> frozenset[int]:
        """Return the tokens that are markup and never part of a text."""
        known = {**self.vocabulary.control, **self.vocabulary.user_defined}
        return frozenset(token for text, token in known.items() if not text.isspace())

    @property
    def spelling(self) -> Spelling:
        return Spelling(self.model.piece, self.model.is_end, self.marker_ids())

    @property
    def call_tags(self) -> tuple[int, int] | None:
        """The tokens `<tool_call>` and `</tool_call>`; None if the model writes calls in an unknown way, or none."""
        begin, end = self.special("<tool_call>"), self.special("</tool_call>")
        return (begin, end) if self.report.template.call_dialect and begin is not None and end is not None else None

    def special(self, text: str) -> int | None:
        """Return the id of the control or user-defined token `text`; None if it is not such a token."""
        return self.vocabulary.user_defined.get(text, self.vocabulary.control.get(text))


def load(options: DecidedOptions, log: EngineLog, progress: Progress, is_cancelled: Callable[[], bool]) -> Session:
    """Load the model and everything it needs. Raise LoadError if that fails, with nothing left allocated."""
    started, log_start = time.monotonic(), log.mark()
    _check_files(options)
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
        vocabulary = model.vocabulary()
        progress("template", 0.97)
        _stop_if(is_cancelled())
        templates, abilities = _templates(options, model, vocabulary)
        cache = PromptCache(
            ContextMemory(model), can_cut_anywhere=model.can_cut_anywhere, budget_bytes=budget_bytes - budget_bytes // 4
        )
        report = _report(
            options, model, vocabulary, abilities, vision, log.since(log_start), time.monotonic() - started
        )
        states = ChatStates(
            cache,
            can_cut_anywhere=model.can_cut_anywhere,
            fingerprint=_fingerprint(options),
            budget_bytes=options.chat_states_mib * _MIB,
            free_bytes=lambda: _free_bytes(report),
        )
        undo.pop_all()
    n_threads = params.threads(options)
    threads = Threads(model, n_threads, options.n_threads_batch or n_threads)
    return Session(model, vision, templates, vocabulary, cache, states, report, threads)


def _n_draft_max(options: DecidedOptions, model: LoadedModel) -> int:
    """Return how many drafted tokens the memory can take back. llama.cpp gives fewer snapshots than it was asked for
    where a recurrent architecture has none, and says nothing.
    """
    if options.speculative == "off" or (options.speculative == "mtp" and model.head is None):
        return 0
    n_drafts = params.most_drafts(options)
    return n_drafts if model.can_cut_anywhere else min(n_drafts, C.llama_n_rs_seq(model.ctx))


def _fingerprint(options: DecidedOptions) -> str:
    """Return what identifies the content of this model's chat states; something unique if a file cannot be read."""
    table = own_table()
    try:
        version = table.read_text(encoding="utf-8") if table else importlib.metadata.version("llama-cpp-python")
        return fingerprint_of(options, version)
    except OSError:
        return uuid.uuid4().hex


def _free_bytes(report: LoadReport) -> int:
    """Return how much RAM chat states may take now.

    A part is left to the system. Weights that are read through mmap count as free, but the engine needs them.
    """
    mapped = report.options.load_mode == "mmap"
    on_cpu = sum(row.weights_bytes for row in report.allocations if row.device == "CPU") if mapped else 0
    return int(psutil.virtual_memory().available) - on_cpu - _LEFT_TO_SYSTEM


def _check_files(options: DecidedOptions) -> None:
    """Refuse pipes and devices, because native code would block forever on them. It reports other problems itself."""
    adapters = (lora_adapter(text)[0] for text in options.lora)
    files = (options.model, options.mmproj, options.draft_model, options.chat_template_file, *adapters)
    for path in filter(None, files):
        try:
            open_regular(Path(path)).close()
        except NotRegularFile as error:
            raise LoadError("options", mark("{0} can't be used: {1}."), Path(path).name, error.strerror) from error
        except OSError:
            continue


def _stop_if(cancelled: bool) -> None:
    if cancelled:
        raise LoadError("cancelled", "the load was cancelled")


def _load_model(options: DecidedOptions, progress: Progress, is_cancelled: Callable[[], bool]) -> LoadedModel:
    def weights_read(fraction: float) -> bool:
        progress("weights", fraction * _WEIGHTS_SHARE)
        return not is_cancelled()

    try:
        settings = params.ModelParams(options, weights_read)
    except QwenDeskError as error:
        raise LoadError("options", error.source, *error.values) from error
    C.llama_numa_init(params.numa_strategy(options))
    handle = C.llama_model_load_from_file(options.model.encode(), settings.struct)
    _stop_if(is_cancelled())
    if not handle:
        raise LoadError("weights", mark("The engine couldn't load the model."))
    progress("context", _WEIGHTS_SHARE)
    with contextlib.ExitStack() as undo:
        undo.callback(C.llama_model_free, handle)
        try:
            context_params = params.context_params(options, C.llama_model_n_ctx_train(handle))
        except QwenDeskError as error:
            raise LoadError("options", error.source, *error.values) from error
        ctx = C.llama_init_from_model(handle, context_params)
        if not ctx:
            raise LoadError("context", mark("The engine couldn't create the context."))
        undo.callback(C.llama_free, ctx)
        head = load_head(options, handle, ctx, context_params, is_cancelled)
        _stop_if(is_cancelled())
        model = LoadedModel(handle, ctx, head)
        undo.pop_all()
    return model


def _add_adapters(options: DecidedOptions, model: LoadedModel) -> None:
    """Load the LoRA adapters, each given as FILE or FILE=SCALE. The model owns them afterwards."""
    if not options.lora:
        return
    adapters = (C.llama_adapter_lora_p_ctypes * len(options.lora))()
    scales = (ctypes.c_float * len(options.lora))()
    for index, text in enumerate(options.lora):
        path, scale = lora_adapter(text)
        adapter = C.llama_adapter_lora_init(model.handle, path.encode())
        if not adapter:
            raise LoadError("lora", mark("The LoRA adapter {0} couldn't be loaded."), path)
        adapters[index], scales[index] = adapter, scale
    if C.llama_set_adapters_lora(model.ctx, adapters, len(options.lora), scales) != 0:
        raise LoadError("lora", mark("The engine refused the LoRA adapters."))


def _load_vision(options: DecidedOptions, model: LoadedModel, budget_bytes: int) -> Vision | None:
    if not options.mmproj or options.vision == "off":
        return None
    handle = M.mtmd_init_from_file(options.mmproj.encode(), model.handle, params.vision_params(options))
    if not handle:
        raise LoadError("vision", mark("The engine couldn't load the vision file (mmproj)."))
    if not M.mtmd_support_vision(handle):
        M.mtmd_free(handle)
        raise LoadError("vision", mark("The mmproj file has no vision encoder."))
    return Vision(handle, model, budget_bytes)


def _templates(
    options: DecidedOptions, model: LoadedModel, vocabulary: Vocabulary
) -> tuple[Mapping[ChatFormat | Literal[""], ChatTemplate], TemplateAbilities]:
    """Return the template of the chosen file, else that of the model, else the built-in ones that suit the model.

    A model's template that cannot be used is replaced by a built-in one, and a note says why. Raise LoadError if the
    chosen file cannot be used.
    """
    bos, eos = (_token_text(model, C.llama_vocab_bos), _token_text(model, C.llama_vocab_eos))
    note = ""
    own = model.meta("tokenizer.chat_template")
    candidates: list[tuple[Literal["model", "file"], str]] = []
    if options.chat_template_file:
        candidates.append(("file", _read_template(options.chat_template_file)))
    elif own:
        candidates.append(("model", own))
    for origin, source in candidates:
        try:
            template = ChatTemplate(source, bos=bos, eos=eos)
            return {"": template}, probe_abilities(template, origin)
        except QwenDeskError as error:
            if origin == "file":
                raise LoadError("template", error.source, *error.values) from error
            note = error.sentence
    formats = usable_formats({**vocabulary.control, **vocabulary.user_defined})
    if own and formats[0] == "chatml":
        template = ChatTemplate(BUILTIN_CHATML, bos=bos, eos=eos)
        return {"": template}, msgspec.structs.replace(probe_abilities(template, "builtin"), note=note)
    is_base = not own and not is_trained_to_chat(model.meta("general.name"), Path(options.model).stem)
    abilities = TemplateAbilities(
        source="builtin", enable_thinking=False, preserve_thinking=False, tools=False, note=note, formats=formats,
        is_base=is_base,
    )  # fmt: skip
    return {name: ChatTemplate(FORMATS[name].source, eos=eos) for name in formats}, abilities


def _read_template(path: str) -> str:
    try:
        return read_bounded(Path(path), _MAX_TEMPLATE_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise LoadError("options", mark("The chat template file can't be read: {0}."), reason) from error


def _token_text(model: LoadedModel, which: Callable[[C.llama_vocab_p], int]) -> str:
    token = which(model.vocab)
    text = C.llama_vocab_get_text(model.vocab, token) if token >= 0 else None
    return text.decode("utf-8", "replace") if text else ""


def _trained_context(model: LoadedModel) -> int:
    """Return the context length in the file's header. llama.cpp replaces its own number when a context uses YaRN."""
    written = model.meta(f"{model.meta('general.architecture')}.context_length")
    return int(written) if written.isdecimal() else int(C.llama_model_n_ctx_train(model.handle))


def _report(
    options: DecidedOptions, model: LoadedModel, vocabulary: Vocabulary, abilities: TemplateAbilities,
    vision: Vision | None, lines: tuple[str, ...], load_s: float,
) -> LoadReport:  # fmt: skip
    allocations = read_allocations(lines, buffer_names())
    if vision is not None:
        device = next((row.device for row in allocations if row.vision_bytes), "CPU")
        allocations = with_vision_weights(allocations, device, Path(options.mmproj).stat().st_size)
    special = {**vocabulary.control, **vocabulary.user_defined}
    thinks = {"<think>", "</think>"} <= special.keys()
    if not {"<tool_call>", "</tool_call>"} <= special.keys():  # the template is that of another family
        abilities = msgspec.structs.replace(abilities, call_dialect="")
    return LoadReport(
        options=options,
        name=model.meta("general.name") or Path(options.model).stem,
        architecture=model.meta("general.architecture"),
        n_params=C.llama_model_n_params(model.handle),
        weights_bytes=C.llama_model_size(model.handle),
        n_ctx=model.n_ctx,
        n_ctx_train=_trained_context(model),
        n_layers=C.llama_model_n_layer(model.handle),
        n_vocab=model.n_vocab,
        is_hybrid=bool(C.llama_model_is_hybrid(model.handle)),
        can_think=thinks and abilities.enable_thinking,
        can_see=vision is not None,
        pairs_frames=vision is not None and abilities.has_video and vision.pairs_frames(),
        template=abilities,
        allocations=allocations,
        load_s=load_s,
        end_tokens=tuple(token for token in special.values() if model.is_end(token)),
        call_token=special.get("<tool_call>"),
        n_draft_max=_n_draft_max(options, model),
        recommended_sampling=read_recommended(model.meta),
    )
