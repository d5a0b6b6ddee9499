"""YaRN with the real engine: what it logs, and what the model then computes. llama.cpp has no getter for the scale."""

import re

import llama_cpp.llama_cpp as C  # noqa: N812
import numpy as np

from qwendesk.core import paths
from qwendesk.core.options import DecidedOptions, LoadOptions
from qwendesk.core.plan import MachineMemory
from qwendesk.core.units import GIB
from qwendesk.engine.worker.loader import Session, load
from qwendesk.engine.worker.log import EngineLog
from qwendesk.hardware.planner import best_plan
from qwendesk.hub.gguf import read_facts

TRAINED = 32_768
"""Context length that the demo model was trained on."""
TEXT = "VRAM spill happens when a model needs more memory than the card has."


LOG = EngineLog()
"""Never freed, because llama.cpp goes on calling it."""


def planned(n_ctx: int) -> DecidedOptions:
    machine = MachineMemory(ram_total_bytes=8 * GIB, ram_available_bytes=8 * GIB, physical_cores=1)
    asked = LoadOptions(model=str(paths.demo_model()), n_ctx=n_ctx, vision="off")
    return best_plan(read_facts(paths.demo_model()), None, machine, asked).options


def loaded(n_ctx: int) -> tuple[Session, float]:
    """Load with the planned options. Return the session and the frequency scale that the engine logged."""
    mark = LOG.mark()
    session = load(planned(n_ctx), LOG, lambda _stage, _fraction: None, lambda: False)
    found = [re.search(r"llama_context: freq_scale\s+= ([\d.e-]+)", line) for line in LOG.since(mark)]
    return session, float(next(match[1] for match in found if match is not None))


def logits(session: Session) -> np.ndarray:
    session.model.decode(session.model.tokenize(TEXT), 0)
    pointer = C.llama_get_logits_ith(session.model.ctx, -1)
    return np.ctypeslib.as_array(pointer, (session.model.n_vocab,)).copy()


def test_the_engine_scales_positions_as_planned_and_computes_something_else() -> None:
    LOG.install()
    computed: dict[int, np.ndarray] = {}
    for factor in (1, 2, 4):
        session, scale = loaded(TRAINED * factor)
        try:
            assert scale == 1 / factor
            assert session.report.n_ctx == TRAINED * factor
            assert session.report.n_ctx_train == TRAINED, "llama.cpp changes its own number"
            computed[factor] = logits(session)
        finally:
            session.close()
    spread = computed[1].std()
    assert np.abs(computed[1] - computed[2]).max() > 0.05 * spread
    assert np.abs(computed[2] - computed[4]).max() > 0.05 * spread
