"""Loads the draft head of a model: from the model's own file, or from a file of its own."""

import contextlib
import logging
from collections.abc import Callable
from pathlib import Path

import llama_cpp.llama_cpp as C
import msgspec

from qwendesk.core.options import DecidedOptions
from qwendesk.engine.worker import params
from qwendesk.engine.worker.mtp_head import MtpHead

_logger = logging.getLogger(__name__)
_COMPARED_TOKENS = 1000
"""How many tokens of both vocabularies are compared, spread evenly: llama.cpp's header checks tell no more."""


def load_head(
    options: DecidedOptions,
    model: C.llama_model_p,
    ctx: C.llama_context_p,
    context_params: C.llama_context_params,
    is_cancelled: Callable[[], bool],
) -> MtpHead | None:
    """Return the draft head for `ctx`, the context of `model` made with `context_params`.

    None if it isn't asked for or can't be had: the model works without it. The log says why.
    """
    if options.speculative != "mtp" or not C.llama_n_rs_seq(ctx):
        return None
    with contextlib.ExitStack() as undo:
        own = None
        if options.draft_model:
            settings = params.ModelParams(head_options(options), lambda _fraction: not is_cancelled())
            own = C.llama_model_load_from_file(options.draft_model.encode(), settings.struct)
            name = Path(options.draft_model).name
            if not own:
                _logger.warning("The draft head %s could not be loaded. The model is loaded without it.", name)
                return None
            undo.callback(C.llama_model_free, own)
            if not _fits(own, model):
                _logger.warning("The draft head %s is for another model. The model is loaded without it.", name)
                return None
        source = own or model
        if not C.llama_model_n_layer_nextn(source):
            return None
        draft = C.llama_init_from_model(source, params.draft_params(context_params, ctx))
        if not draft:
            _logger.warning("There is too little memory for the draft head. The model is loaded without it.")
            return None
        undo.pop_all()
    vocab = C.llama_model_get_vocab(model)
    return MtpHead(ctx, draft, C.llama_model_n_embd(model), C.llama_vocab_n_tokens(vocab), own)


def head_options(options: DecidedOptions) -> DecidedOptions:
    """Return the options to load a draft head in a file of its own, which goes where the model's last layer is."""
    return msgspec.structs.replace(
        options,
        model=options.draft_model,
        draft_model="",
        n_gpu_layers="all" if params.gpu_layers(options) > 1 else 0,
        n_cpu_moe=0,
        override_tensor=(),
        kv_overrides=(),
    )


def _fits(head: C.llama_model_p, model: C.llama_model_p) -> bool:
    """Return whether hidden rows and tokens of `model` mean the same to `head`."""
    ours, theirs = C.llama_model_get_vocab(model), C.llama_model_get_vocab(head)
    n_tokens = C.llama_vocab_n_tokens(ours)
    return (
        bool(C.llama_model_n_layer_nextn(head))
        and C.llama_model_n_embd_out(head) == C.llama_model_n_embd_out(model)
        and C.llama_vocab_n_tokens(theirs) == n_tokens
        and all(
            C.llama_vocab_get_text(ours, token) == C.llama_vocab_get_text(theirs, token)
            for token in range(0, n_tokens, max(n_tokens // _COMPARED_TOKENS, 1))
        )
    )
