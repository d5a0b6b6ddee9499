"""Estimates how long a run of the speed tests takes, from the speeds of an earlier run or of ordinary answers."""

from collections.abc import Sequence

from qwendesk.bench.questions import TEXTS
from qwendesk.bench.rows import BenchRow, find_row
from qwendesk.bench.speeds import SpeedPlan

_PROMPT_FACTOR = 12.0
"""Prompts are about this much faster than generation where only that is known."""
_LOAD_S, _FOLLOW_UPS_TOKENS = 5.0, 2500


def expected_duration_s(
    plan: SpeedPlan, rows: Sequence[BenchRow], n_ctx: int = 0, decode_tok_s: float = 0.0
) -> float | None:
    """Return the seconds that a run takes; None if nothing is known of this model's speed.

    `rows` are those of an earlier run, `n_ctx` is 0 if the context isn't known yet, and `decode_tok_s` is the speed of
    ordinary answers, used without an earlier run.
    """
    prompt_row = find_row(rows, f"pp{max(plan.n_prompts, default=0)}", 0, with_drafts=False)
    decode_row = find_row(rows, f"tg{max(plan.n_gens, default=0)}", 0, with_drafts=False)
    decode_tok_s = decode_row.median if decode_row is not None else decode_tok_s
    if decode_tok_s <= 0:
        return None
    prompt_tok_s = prompt_row.median if prompt_row is not None else _PROMPT_FACTOR * decode_tok_s
    depths = plan.depths_in(n_ctx) if n_ctx else plan.depths
    n_loads = 2 if plan.with_drafts else 1
    texts = len(TEXTS) * n_loads if plan.with_drafts else 0
    prompts = plan.repeats * sum(plan.n_prompts) * len(depths) + n_loads * max(depths, default=0)
    if plan.with_follow_ups:
        prompts += (plan.repeats + 1) * _FOLLOW_UPS_TOKENS
    decoded = plan.repeats * len(depths) * (sum(plan.n_gens) + texts * max(plan.n_gens, default=0))
    return n_loads * _LOAD_S + prompts / prompt_tok_s + decoded / decode_tok_s
