"""Scores a text with a model: perplexity, and divergence from a base that another quant or cache type made."""

import msgspec

from qwendesk.bench.bench_engine import BenchEngine, BenchFailure, Decide, ShowFraction
from qwendesk.core.benchmarks import TextScore, TextTest
from qwendesk.core.failures import LoadFailure
from qwendesk.core.options import LoadOptions
from qwendesk.core.units import GIB
from qwendesk.engine.protocol import LoadReport

SCORING_BYTES = GIB
"""Memory that scoring takes beyond the loaded model, at most: a second context with rows of logits. The planner leaves
it free."""
_SHORTEST_CONTEXT = 512


class QualityResult(msgspec.Struct, frozen=True):
    """A score, and how the model was loaded for it."""

    report: LoadReport
    score: TextScore


async def measure_quality(
    engine: BenchEngine, options: LoadOptions, test: TextTest, decide: Decide | None, show: ShowFraction | None = None
) -> QualityResult | LoadFailure | BenchFailure:
    """Load a model without its vision file and score a text.

    `decide` is a planner that leaves SCORING_BYTES free; None if the engine's own does.
    """
    wanted = msgspec.structs.replace(
        options, mmproj="", speculative="off", n_ctx=max(test.n_ctx, _SHORTEST_CONTEXT), chat_states_mib=0
    )
    report = await engine.load(wanted, decide)
    if isinstance(report, LoadFailure):
        return report
    score = await engine.score(test, show)
    return score if isinstance(score, BenchFailure) else QualityResult(report, score)
