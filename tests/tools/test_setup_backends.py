"""Which engine the set-up chooses, and from where."""

import pytest

from tools.setup import backends
from tools.setup.backends import Machine, choose, cmake_flags, compiler_environment, prebuilt_folders
from tools.setup.project import SetupError

GAMING_PC = Machine("Linux", has_nvidia_gpu=True, has_nvcc=True, has_gpu=True, has_vulkan=True)


@pytest.mark.parametrize(
    ("machine", "backend"),
    [
        (GAMING_PC, "cuda"),
        (Machine("Linux", has_nvidia_gpu=True, has_gpu=True, has_vulkan=True), "vulkan"),
        (Machine("Linux", has_gpu=True, has_vulkan=True), "vulkan"),
        (Machine("Linux", has_nvcc=True), "cpu"),
        (Machine("Linux", has_vulkan=True), "cpu"),
        (Machine("Linux", has_nvidia_gpu=True, has_gpu=True), "cpu"),
        (Machine("Darwin"), "metal"),
        (Machine("Windows", has_nvidia_gpu=True, has_gpu=True, has_vulkan=True), "vulkan"),
        (Machine("Windows"), "cpu"),
    ],
)
def test_auto_chooses_the_fastest_usable_backend(machine: Machine, backend: str) -> None:
    assert choose("auto", machine).backend == backend


def test_unused_gpu_is_explained() -> None:
    assert "CUDA toolkit" in choose("auto", Machine("Linux", has_nvidia_gpu=True, has_gpu=True)).reason
    assert "Vulkan" in choose("auto", Machine("Linux", has_gpu=True)).reason
    for nvidia in (True, False):
        reason = choose("auto", Machine("Linux", has_nvidia_gpu=nvidia, has_gpu=True)).reason
        assert "ENGINE=vulkan, which names the packages" in reason, "the shorter way to a card"


@pytest.mark.parametrize("backend", ["cpu", "cuda", "vulkan"])
def test_requested_backend_is_chosen(backend: str) -> None:
    assert choose(backend, Machine("Linux")).backend == backend


@pytest.mark.parametrize(
    ("wanted", "word"),
    [("opencl", "auto, cpu, cpu-avx2, cpu-sse42, cuda, cuda-avx2, vulkan, vulkan-avx2, metal"), ("metal", "macOS")],
)
def test_unavailable_backend_is_refused_with_a_reason(wanted: str, word: str) -> None:
    with pytest.raises(SetupError, match=word):
        choose(wanted, Machine("Linux"))


def test_each_backend_builds_with_its_flag_and_without_openssl() -> None:
    flags = {backend: cmake_flags(backend) for backend in ("cpu", "cuda", "vulkan", "metal")}

    assert all("-DLLAMA_OPENSSL=OFF" in each for each in flags.values())
    assert {"-DGGML_CUDA=ON", "-DGGML_VULKAN=ON", "-DGGML_METAL=ON"} & set(flags["cpu"]) == set()
    assert "-DGGML_CUDA=ON" in flags["cuda"]
    assert "-DGGML_CUDA_NCCL=OFF" in {*flags["cuda"]} & {*cmake_flags("cuda-avx2")}
    assert "-DGGML_VULKAN=ON" in flags["vulkan"]
    assert "-DGGML_METAL=ON" in flags["metal"]


def test_prebuilt_cuda_engines_fit_the_toolkit_newest_first() -> None:
    folders = prebuilt_folders("cuda", (12, 4))

    assert folders[0] == "cu124"
    assert folders == sorted(folders, reverse=True)
    assert all(folder.startswith("cu12") for folder in folders)


def test_prebuilt_cuda_without_a_toolkit_says_what_is_missing() -> None:
    with pytest.raises(SetupError, match="nvcc"):
        prebuilt_folders("cuda", None)


def test_other_prebuilt_engines_have_one_folder() -> None:
    assert prebuilt_folders("vulkan", None) == ["vulkan"]


def test_portable_engine_uses_only_the_instructions_in_its_name() -> None:
    avx2, sse42 = set(cmake_flags("cpu-avx2")), set(cmake_flags("cpu-sse42"))
    assert "-DGGML_NATIVE=OFF" in avx2 & sse42
    assert "-DGGML_AVX2=ON" in avx2
    for graphics, flag in (("vulkan-avx2", "-DGGML_VULKAN=ON"), ("cuda-avx2", "-DGGML_CUDA=ON")):
        assert avx2 - {"-DGGML_METAL=OFF"} | {flag} <= set(cmake_flags(graphics))
    assert {f"-DGGML_{name}=OFF" for name in ("AVX", "AVX2", "FMA", "F16C", "BMI2")} <= sse42


def test_native_engine_is_built_without_amx_if_the_compiler_supports_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CFLAGS", "-O1")
    monkeypatch.setattr(backends, "_compiler_takes", lambda _flags: True)
    assert compiler_environment("cpu")["CFLAGS"] == "-O1 -mno-amx-tile -mno-amx-int8 -mno-amx-bf16"
    assert compiler_environment("cuda") == {}
    monkeypatch.setattr(backends, "_compiler_takes", lambda _flags: False)
    assert compiler_environment("cpu") == {}
