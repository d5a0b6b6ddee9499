"""Numbers as people read them."""

import pytest

from qwendesk.core.units import show_tokens


@pytest.mark.parametrize(
    ("n_tokens", "shown"),
    [
        (512, "512"),
        (12_345, "12.1K"),
        (262_144, "256K"),
        (999_999, "977K"),
        (1_010_000, "1M"),
        (1_048_576, "1M"),
        (1_600_000, "1.5M"),
        (2_097_152, "2M"),
    ],
)
def test_a_million_tokens_is_called_so(n_tokens: int, shown: str) -> None:
    """The context slider ended at "986K", which nobody calls the 1,010,000 tokens of the model cards."""
    assert show_tokens(n_tokens) == shown
