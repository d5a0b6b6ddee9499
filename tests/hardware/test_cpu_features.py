"""Processor features, from what each system says."""

from qwendesk.hardware.cpu_features import cpu_features, darwin_features, linux_features, windows_features


def test_linux_names_them_in_a_line() -> None:
    text = "processor\t: 0\nmodel name\t: Some CPU\nflags\t\t: fpu sse4_2 avx2 fma f16c\nbugs\t\t:\n"
    assert linux_features(text) == {"fpu", "sse4_2", "avx2", "fma", "f16c"}
    assert linux_features("Features\t: fp asimd\n") == {"fp", "asimd"}
    assert linux_features("processor: 0\n") is None


def test_an_intel_mac_spells_them_otherwise() -> None:
    found = darwin_features("FPU SSE4.2 AVX1.0 F16C\nAVX2 BMI2\n", "x86_64")
    assert found is not None
    assert {"sse4_2", "avx", "avx2", "f16c"} <= found
    assert darwin_features("", "x86_64") is None
    assert darwin_features("", "arm64") == {"neon"}


def test_windows_answers_by_number() -> None:
    assert windows_features(lambda number: number in {38, 39, 40}) == {"sse4_2", "avx", "avx2", "fma", "f16c", "bmi2"}
    assert windows_features(lambda number: number == 38) == {"sse4_2"}


def test_this_processor_has_some() -> None:
    assert cpu_features()
