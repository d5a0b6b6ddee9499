"""Names and figures of measured tests."""

import pytest

from qwendesk.core.benchmarks import SpeedSamples, SpeedTest


@pytest.mark.parametrize(
    ("test", "name"),
    [
        (SpeedTest(n_prompt=512), "pp512"),
        (SpeedTest(n_gen=128), "tg128"),
        (SpeedTest(n_prompt=512, n_gen=128), "pp512+tg128"),
        (SpeedTest(n_gen=128, depth=2048), "tg128 @ d2048"),
        (SpeedTest(n_gen=128, depth=2048, text="Once"), "text128 @ d2048"),
    ],
)
def test_a_test_is_named_as_llama_bench_names_it(test: SpeedTest, name: str) -> None:
    assert test.name == name


def test_median_mean_and_spread() -> None:
    samples = SpeedSamples(tok_s=(10.0, 12.0, 20.0))

    assert samples.median == 12
    assert samples.mean == 14
    assert samples.spread == pytest.approx(5.2915, abs=1e-4)
    assert SpeedSamples(tok_s=(10.0,)).spread == 0


def test_acceptance_is_known_only_with_drafts() -> None:
    assert SpeedSamples(tok_s=(1.0,)).acceptance is None
    assert SpeedSamples(tok_s=(1.0,), drafted=8, accepted=6).acceptance == 0.75
