"""Which engine the set-up chooses, and from where."""

import pytest

from tools.setup import backends
from tools.setup.backends import Machine, choose, cmake_flags, compiler_environment, prebuilt_folder
from tools.setup.nvidia import NvidiaCard
from tools.setup.project import SetupError

RTX_3090 = (NvidiaCard("NVIDIA GeForce RTX 3090", "580.65.06", (8, 6)),)
GTX_1080 = (NvidiaCard("NVIDIA GeForce GTX 1080", "580.65.06", (6, 1)),)
OLD_DRIVER = (NvidiaCard("NVIDIA GeForce RTX 3090", "550.54.14", (8, 6)),)


def nvidia_pc(
    system: str = "Linux",
    cards: tuple[NvidiaCard, ...] = RTX_3090,
    *,
    toolkit: tuple[int, int] | None = None,
    has_vulkan: bool = False,
) -> Machine:
    """A PC with an NVIDIA card; on Linux the set-up can fetch the compiler of CUDA 13.5."""
    wheels = (13, 5) if system == "Linux" else None
    return Machine(system, cards=cards, toolkit=toolkit, wheels=wheels, has_gpu=True, has_vulkan=has_vulkan)


@pytest.mark.parametrize(
    ("machine", "backend", "may_build_cuda"),
    [
        (nvidia_pc(toolkit=(12, 8), has_vulkan=True), "cuda", False),
        (nvidia_pc(cards=GTX_1080, toolkit=(12, 8), has_vulkan=True), "cuda", False),
        (nvidia_pc(cards=GTX_1080, toolkit=(13, 0), has_vulkan=True), "vulkan", False),
        (nvidia_pc(has_vulkan=True), "vulkan", True),
        (nvidia_pc(cards=(*GTX_1080, *RTX_3090), has_vulkan=True), "vulkan", True),
        (nvidia_pc(cards=GTX_1080, has_vulkan=True), "vulkan", False),
        (nvidia_pc(cards=OLD_DRIVER, has_vulkan=True), "vulkan", False),
        (nvidia_pc(), "cpu", True),
        (nvidia_pc("Windows", has_vulkan=True), "vulkan", False),
        (Machine("Linux", wheels=(13, 5), has_gpu=True, has_vulkan=True), "vulkan", False),
        (Machine("Linux", toolkit=(13, 0), wheels=(13, 5)), "cpu", False),
        (Machine("Linux", has_vulkan=True), "cpu", False),
        (Machine("Darwin"), "metal", False),
        (Machine("Windows"), "cpu", False),
    ],
)
def test_auto_chooses_what_is_ready_soon_and_knows_whether_cuda_can_be_built(
    machine: Machine, backend: str, may_build_cuda: bool
) -> None:
    choice = choose("auto", machine)
    assert (choice.backend, choice.may_build_cuda) == (backend, may_build_cuda)


def test_unused_gpu_is_explained() -> None:
    assert "CUDA toolkit" in choose("auto", nvidia_pc("Windows")).reason
    assert "Vulkan" in choose("auto", Machine("Linux", has_gpu=True)).reason
    for machine in (nvidia_pc(), nvidia_pc("Windows"), Machine("Linux", has_gpu=True)):
        assert "ENGINE=vulkan, which names the packages" in choose("auto", machine).reason, "the shorter way to a card"


@pytest.mark.parametrize("has_vulkan", [False, True])
@pytest.mark.parametrize(
    ("cards", "why"),
    [
        (GTX_1080, "CUDA 13 needs a GeForce GTX 16 or RTX 20 or newer, and this PC has NVIDIA GeForce GTX 1080"),
        (OLD_DRIVER, "CUDA 13 needs an NVIDIA driver from 580 on, and this one is 550.54.14"),
    ],
)
def test_card_or_driver_that_is_too_old_for_cuda_is_named(
    cards: tuple[NvidiaCard, ...], why: str, has_vulkan: bool
) -> None:
    reason = choose("auto", nvidia_pc(cards=cards, has_vulkan=has_vulkan)).reason
    assert reason.endswith(f"; no CUDA engine, since {why}")


@pytest.mark.parametrize("backend", ["cpu", "cuda", "vulkan"])
def test_requested_backend_is_chosen(backend: str) -> None:
    assert choose(backend, Machine("Linux")).backend == backend


@pytest.mark.parametrize(
    ("wanted", "word"),
    [
        ("opencl", "auto, cpu, cpu-avx2, cpu-sse42, cuda, cuda-avx2, vulkan, vulkan-avx2, hip, metal"),
        ("metal", "macOS"),
    ],
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


@pytest.mark.parametrize(
    ("driver", "capability", "follows"),
    [
        ("581.15", (8, 9), True),
        ("566.36", (6, 1), True),
        ("595.97", (12, 0), True),
        ("516.94", (8, 6), False),
        ("581.15", (5, 2), False),
        ("581.15", None, False),
    ],
)
@pytest.mark.parametrize("has_vulkan", [True, False])
def test_ready_engine_answers_until_the_app_has_the_one_for_cuda(
    driver: str, capability: tuple[int, int] | None, follows: bool, has_vulkan: bool
) -> None:
    card = NvidiaCard("NVIDIA GeForce", driver, capability)
    pc = Machine("Windows", (card,), toolkit=(12, 4), takes_ready=True, has_gpu=has_vulkan, has_vulkan=has_vulkan)
    choice = choose("auto", pc)
    assert (choice.backend, choice.cuda_follows) == ("vulkan" if has_vulkan else "cpu", follows)
    if follows:
        assert choose("cuda", pc) == choice
    else:
        with pytest.raises(SetupError, match="no ready CUDA engine for this PC"):
            choose("cuda", pc)
    assert not choose("vulkan", pc).cuda_follows


def test_ready_engine_for_radeon_is_taken_only_when_asked_for() -> None:
    assert choose("hip", Machine("Windows", takes_ready=True)).backend == "hip"
    assert choose("auto", Machine("Windows", takes_ready=True, has_gpu=True, has_vulkan=True)).backend == "vulkan"
    assert [prebuilt_folder(each) for each in ("hip", "vulkan", "cpu")] == ["hip-radeon", "vulkan", "cpu"]
    with pytest.raises(SetupError, match="on Windows only"):
        choose("hip", Machine("Linux"))
    with pytest.raises(SetupError, match="can't be built"):
        cmake_flags("hip")


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
