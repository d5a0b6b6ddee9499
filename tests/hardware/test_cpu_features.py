"""Processor features, from what each system says."""

from qwendesk.hardware.cpu_features import cpu_features, darwin_features, linux_features, windows_features


def test_features_are_read_from_cpuinfo_on_linux() -> None:
    text = "processor\t: 0\nmodel name\t: Some CPU\nflags\t\t: fpu sse4_2 avx2 fma f16c\nbugs\t\t:\n"
    assert linux_features(text) == {"fpu", "sse4_2", "avx2", "fma", "f16c"}
    assert linux_features("Features\t: fp asimd\n") == {"fp", "asimd"}
    assert linux_features("processor: 0\n") is None


def test_feature_names_of_an_intel_mac_are_translated() -> None:
    found = darwin_features("FPU SSE4.2 AVX1.0 F16C\nAVX2 BMI2\n", "x86_64")
    assert found is not None
    assert {"sse4_2", "avx", "avx2", "f16c"} <= found
    assert darwin_features("", "x86_64") is None
    assert darwin_features("", "arm64") == {"neon"}


def test_features_are_asked_by_number_on_windows() -> None:
    assert windows_features(lambda number: number in {38, 39, 40}) == {"sse4_2", "avx", "avx2", "fma", "f16c", "bmi2"}
    assert windows_features(lambda number: number == 38) == {"sse4_2"}


def test_this_cpu_has_features() -> None:
    assert cpu_features()
