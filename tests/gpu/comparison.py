"""How far the logits of one run are from those of another that had the same tokens."""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from tests.gpu.logits import Outcome


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """`rms` is the root of the mean square over all logits of all positions, `most` the greatest single difference."""

    name: str
    positions: int
    rms: float
    most: float
    changed: int
    """Positions at which another token is the most likely one."""
    outcome: Outcome


def compare(
    name: str, truth: Mapping[str, np.ndarray], found: Mapping[str, np.ndarray], outcome: Outcome
) -> Difference:
    """Compare what tests/gpu/logits.py wrote. A logit that is no number makes `rms` and `most` no number too."""
    assert sorted(truth) == sorted(found)
    numbers = [key.removeprefix("logits") for key in truth if key.startswith("logits")]
    expected = np.concatenate([truth[f"logits{number}"] for number in numbers]).astype(np.float64)
    got = np.concatenate([found[f"logits{number}"] for number in numbers]).astype(np.float64)
    distance = np.abs(got - expected)
    return Difference(
        name=name,
        positions=len(expected),
        rms=float(np.sqrt(np.mean(distance**2))),
        most=float(distance.max()),
        changed=int((expected.argmax(1) != got.argmax(1)).sum()),
        outcome=outcome,
    )


def table(rows: Sequence[Difference]) -> str:
    """Return the differences as a Markdown table."""
    lines = [
        "| demo model | rms | maximum | changed tokens | load | prompts | answers |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        outcome = row.outcome
        lines.append(
            f"| {row.name} | {row.rms:.3f} | {row.most:.2f} | {row.changed} of {row.positions} "
            f"| {outcome.load_s:.1f} s | {outcome.prompt_tokens} tokens in {outcome.prompt_s:.1f} s "
            f"| {outcome.decoded_tokens} in {outcome.decode_s:.1f} s |"
        )
    return "\n".join(lines) + "\n"
