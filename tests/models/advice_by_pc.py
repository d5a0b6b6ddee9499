"""What each kind of PC must be told to take, for each purpose, and what users of such PCs report in public.

The table was written before the rules that it judges. A PC is described as for `qwendesk recommend`. An expectation
names a model and the bits of its quant, "27B 4-6", and the kind of quant where only that one is right, "27B GSQ 3"; a
slash separates what is right as well. The reports say why: that the file runs there at a speed that suits the purpose,
or that a larger one doesn't.
"""

import argparse
import functools
import re
import shlex

import msgspec

from qwendesk.cli.made_up_pc import add_made_up_pc_options, made_up_machine
from qwendesk.core.units import GIB
from qwendesk.models.fit import Pc, make_pc
from qwendesk.models.purposes import Choice, Purpose

_MODELS = {
    "Flash": "Qwen3.8-Flash-Next", "27B": "Qwen3.8-27B", "3.5-35B": "Qwen3.5-35B-A3B", "35B": "Qwen3.6-35B-A3B",
    "9B": "Qwen3.5-9B", "4B": "Qwen3.5-4B", "2B": "Qwen3.5-2B", "0.8B": "Qwen3.5-0.8B",
}  # fmt: skip


class Row(msgspec.Struct, frozen=True):
    """One PC and the first choices that are right for it."""

    pc: str
    fast: str
    deep: str
    long: str
    quality: str
    report: str = ""
    """A public report of a PC like this one, with its tokens per second; "" if none was found."""

    def expects(self, purpose: Purpose) -> str:
        return str(getattr(self, purpose))


ROWS = (
    # One card with 4 to 12 GB
    Row("--gpu 'GTX 1050 Ti:4' --ram 16", "4B 4-6 / 2B 4-8", "4B 4-6 / 9B 4", "4B 4-8 / 2B 4-8", "9B 4 / 4B 4-8",
        "github.com/AlexsJones/llmfit/pull/815: 63 small models in 4 bits fit its 4 GB whole"),
    Row("--gpu 'GTX 1650:4' --ram 16", "4B 4-6 / 2B 4-8", "4B 4-6 / 9B 4", "4B 4-8 / 2B 4-8", "9B 4 / 4B 4-8",
        "github.com/AlexsJones/llmfit/pull/1030: 2B Q8_0 35.7"),
    Row("--gpu 'RTX 3050 Ti Laptop:4' --ram 32", "35B 4", "35B 4", "35B 4", "35B 4-6",
        "github.com/FlashML-org/FreeToken/issues/239: 3.6-35B in 4 bits about 21 with 4 GB (another engine)"),
    Row("--gpu 'GTX 1060:6' --ram 24", "35B 4 / 9B 4", "35B 4 / 9B 4", "35B 4 / 9B 4", "35B 4 / 9B 4-6",
        "insiderllm.com, best way to run 3.6-35B: 17 with 24 GB of DDR4, experts of 35 layers in RAM"),
    Row("--gpu 'RTX 3070:8' --ram 16", "9B 4-5", "9B 4-6", "9B 4-6 / 4B 4-8", "9B 4-6",
        "collected advice: 8 GB with 16 GB of RAM: 9B or 4B"),
    Row("--gpu 'RTX 3070:8' --ram 32", "35B 4", "35B 4", "35B 4", "35B 4-6",
        "nestfrontier.com: 3.6-35B 22 on an RTX 3070, experts of 32 layers in RAM"),
    Row("--gpu 'RTX 4060 Ti 8GB:8' --ram 32", "35B 4", "35B 4", "35B 4", "35B 4-6",
        "threadnavigator.com: 3.6-35B Q4_K_S 41.6 at 16K"),
    Row("--gpu 'RTX 5060 Laptop:8' --ram 32", "35B 4", "35B 4", "35B 4", "35B 4-6",
        "github.com/sudoingX/qwen38-mtp: 3.8-27B IQ4_XS 4.2, with layers in RAM: too slow"),
    Row("--gpu 'RTX 3080:10' --ram 32", "35B 4", "35B 4", "35B 4", "35B 4-6",
        "github.com/sudoingX/qwen38-mtp: the 27B fits in 2 bits only, at 16K"),
    Row("--gpu 'RTX 3060:12' --ram 16", "3.5-35B 3 / 9B 4-6", "27B GSQ 2-3 / 3.5-35B 3", "3.5-35B 3 / 9B 4-8",
        "27B GSQ 2-3",
        "public code: 3.8-27B GSQ-RCO IQ2_S at 64K and 32.9 with drafts on an RTX 3060"),
    Row("--gpu 'RTX 3060:12' --ram 32", "35B 4", "35B 4 / 27B GSQ 3", "35B 4",
        "35B 4-8 / 27B GSQ 3",
        "jeanfbrito.github.io: 3.6-35B UD-IQ3_XXS 22.9 with 31 GB of DDR4"),
    Row("--gpu 'RTX 4070:12' --ram 32", "35B 4", "35B 4 / 27B GSQ 3", "35B 4",
        "35B 4-8 / 27B GSQ 3",
        "smeltcore.com: 3.6-35B UD-Q4_K_XL 80.8 with drafts, 128K"),
    Row("--gpu 'RTX 5070:12' --ram 64", "35B 4", "Flash 4 / 35B 4-8", "35B 4-8", "Flash 4 / 35B 6-8",
        "Strata's README: Flash-Next 53 to 94 (another engine)"),
    Row("--gpu 'RTX 4080 Laptop:12' --ram 32", "35B 4", "35B 4 / 27B GSQ 3", "35B 4",
        "35B 4-8 / 27B GSQ 3"),
    Row("--gpu 'Arc B580:12' --backend vulkan --ram 32", "35B 4", "35B 4 / 27B GSQ 3", "35B 4",
        "35B 4-8 / 27B GSQ 3",
        "github.com/ggml-org/llama.cpp/issues/22413: the B580 is faster with Vulkan than with SYCL"),
    # One card with 16 to 96 GB
    Row("--gpu 'RTX 4060 Ti:16' --ram 32", "35B 4", "27B GSQ 3", "35B 4", "27B 4 / 27B GSQ 3",
        "github.com/sudoingX/qwen38-mtp/pull/63: 3.8-27B in 15.1 GB 17.6 at 32K"),
    Row("--gpu 'RTX 5060 Ti:16' --ram 32", "35B 4", "27B GSQ 3", "35B 4", "27B 4 / 27B GSQ 3",
        "github.com/irae/choose-a-local-llm: 3.8-27B GSQ-RCO IQ3_S 29.4 at 4K, 21.1 at 64K, all of it in 14.8 GB"),
    Row("--gpu 'RTX 5060 Ti:16' --ram 16", "35B 3-4 / 9B 8", "27B GSQ 3", "35B 3-4 / 27B 3 / 9B 4-8",
        "27B 4 / 27B GSQ 3", "github.com/sudoingX/qwen38-mtp/pull/52: nothing of the 27B is in RAM"),
    Row("--gpu 'RTX 5080:16' --ram 128", "35B 4", "Flash 4", "35B 4-8", "Flash 4",
        "r/LocalLLaMA 1rei65v: 3.5-35B Q4_K_M 69.6, Q8_0 36 to 41"),
    Row("--gpu 'RX 9060 XT:16' --backend vulkan --ram 32", "35B 4", "27B GSQ 3", "35B 4",
        "27B 4 / 27B GSQ 3",
        "github.com/sudoingX/qwen38-mtp: 3.8-27B in 3 bits 15.2 at 32K"),
    Row("--gpu 'RX 7800 XT:16' --backend vulkan --ram 32", "35B 4", "27B GSQ 3", "35B 4",
        "27B 4 / 27B GSQ 3"),
    Row("--gpu 'Arc A770:16' --backend vulkan --ram 32", "35B 4", "27B GSQ 3", "35B 4",
        "27B 4 / 27B GSQ 3"),
    Row("--gpu 'RTX 3080 Ti Laptop:16' --ram 32", "35B 4", "27B GSQ 3", "35B 4",
        "27B 4 / 27B GSQ 3",
        "github.com/sudoingX/qwen38-mtp/pull/56: 3.8-27B UD-Q3_K_XL 14.8"),
    Row("--gpu 'RX 7900 XT:20' --backend vulkan --ram 32", "35B 4", "27B 4", "35B 3-4", "27B 4-5",
        "github.com/sudoingX/qwen38-mtp/pull/83: 3.8-27B UD-Q4_K_M 30.8 at 64K"),
    Row("--gpu 'RX 7900 XTX:24' --backend vulkan --ram 32", "35B 4", "27B 4", "35B 3-4", "27B 4-5",
        "github.com/sudoingX/qwen38-mtp/pull/53: 3.8-27B UD-Q4_K_XL 41.0 at 131K"),
    Row("--gpu 'RTX 3090:24' --ram 32", "35B 4", "27B 4", "35B 3-4", "27B 4-5",
        "r/LocalLLaMA: 3.5-35B 119 to 128 in 3 and 4 bits at 10K; 3.8-27B 31 to 41"),
    Row("--gpu 'RTX 3090:24' --ram 64", "35B 4", "Flash 4", "35B 3-4", "Flash 4",
        "public code: Flash-Next UD-IQ3_XXS 16.3 with 62 GB of DDR4-2667"),
    Row("--gpu 'RTX 4090:24' --ram 128", "35B 4", "Flash 4", "35B 3-4", "Flash 4",
        "Crow#140: Flash-Next UD-Q4_K_XL 22.5 at 80K, experts of 40 layers in RAM"),
    Row("--gpu 'Tesla P40:24' --ram 64", "35B 4", "Flash 4 / 27B 4", "35B 3-4", "Flash 4 / 27B 4-5",
        "r/LocalLLaMA: 3.5-35B Q4_K_M 37"),
    Row("--gpu 'RTX 5090:32' --ram 32", "35B 4-6", "27B 4-6", "35B 4-6", "27B 5-8",
        "r/LocalLLaMA: 3.5-35B 160 to 185; qwen38-mtp: 3.8-27B 61 to 77"),
    Row("--gpu 'RTX 5090:32' --ram 64", "35B 4-6", "Flash 4", "35B 4-6", "Flash 4",
        "public code: Flash-Next UD-Q2_K_XL 41.8 at 33K with DDR5"),
    Row("--gpu 'Tesla V100 32GB:32' --ram 64", "35B 4-6", "Flash 4", "35B 4-6", "Flash 4",
        "r/LocalLLaMA: 3.5-35B UD-Q5_K_XL 38.4"),
    Row("--gpu 'Radeon AI PRO R9700:32' --backend vulkan --ram 64", "35B 4-6", "Flash 4", "35B 4-6", "Flash 4",
        "zolotukhin.ai: 3.6-35B UD-Q4_K_XL 104.5"),
    Row("--gpu 'Arc Pro B70:32' --backend vulkan --ram 64", "35B 4-6", "Flash 4", "35B 4-6", "Flash 4",
        "github.com/intel/llm-scaler/issues/371: 3.6-35B UD-Q6_K 32"),
    Row("--gpu 'RTX PRO 6000:96' --ram 128", "35B 6-8", "Flash 4", "35B 6-8", "Flash 4-8"),
    # Two cards and more
    Row("--gpu 'RTX 3060:12' --gpu 'RTX 3060:12' --ram 32", "35B 4", "27B 4", "35B 3-4", "27B 4-5"),
    Row("--gpu 'RTX 5060 Ti:16' --gpu 'RTX 5060 Ti:16' --ram 64", "35B 4-6", "Flash 4", "35B 4-6", "Flash 4",
        "github.com/sudoingX/qwen38-mtp: 3.8-27B Q4 37"),
    Row("--gpu 'RTX 5070 Ti:16' --gpu 'RTX 5060 Ti:16' --backend vulkan --ram 64", "35B 4-6", "Flash 4", "35B 4-6",
        "Flash 4", "r/LocalLLaMA: 3.5-35B MXFP4 70"),
    Row("--gpu 'RTX 3090:24' --gpu 'RTX 3060:12' --ram 64", "35B 4-6", "Flash 4", "35B 4-6", "Flash 4"),
    Row("--gpu 'RTX 3090:24' --gpu 'RTX 3090:24' --ram 128", "35B 4-8", "Flash 4", "35B 6-8", "Flash 4",
        "baem1n.dev, llm-bench part 3: the 122B in 4 bits doesn't fit in 48 GB"),
    Row("--gpu 'RTX 5060 Ti:16' --gpu 'RTX 5060 Ti:16' --gpu 'RTX 5060 Ti:16' --ram 64", "35B 4-8", "Flash 4",
        "35B 6-8", "Flash 4", "github.com/5p00kyy/club-5060ti/issues/5: 3.8-27B Q8_0 fits with 200K"),
    Row("--gpu 'RTX 3090:24' --gpu 'RTX 3090:24' --gpu 'RTX 3090:24' --ram 64", "35B 4-8", "Flash 4", "35B 6-8",
        "Flash 4"),
    # Macs
    Row("--unified M1:8 --backend metal", "2B 4-8 / 4B 4", "4B 4 / 2B 4-8", "4B 4 / 2B 4-8", "4B 4 / 2B 4-8"),
    Row("--unified M4:16 --backend metal", "9B 4 / 4B 4-6", "9B 4", "9B 4 / 4B 4-8", "9B 4-6",
        "jitesh.dev: Q4_K_M 9B 16, 4B 28, 2B 59 on a Mac mini"),
    Row("--unified M4:24 --backend metal", "9B 4", "9B 4-8", "9B 4-8", "9B 5-8 / 27B 4",
        "github.com/sudoingX/qwen38-mtp: 3.8-27B in 3 bits 5.8"),
    Row("--unified 'M1 Max:32' --backend metal", "35B 3-4", "27B 4", "35B 3-4 / 9B 6-8", "27B 4-5",
        "docs/guide/macs.md: 3.8-27B IQ4_NL 14 on an M1 Max"),
    Row("--unified M2:32 --backend metal", "35B 3-4 / 9B 4", "35B 3-4", "35B 3-4 / 9B 4-8", "35B 4 / 27B 4"),
    Row("--unified 'M3 Pro:36' --backend metal", "35B 4", "35B 4", "35B 3-6", "27B 4-5 / 35B 6",
        "github.com/JustVugg/colibri/pull/544: 3.6-35B about 40, 9B 15 to 20"),
    Row("--unified 'M4 Pro:48' --backend metal", "35B 4", "27B 4", "35B 4-6", "27B 4-8",
        "r/LocalLLaMA: 3.5-35B in 4 bits 30"),
    Row("--unified 'M4 Max:64' --backend metal", "35B 4", "27B 4-8", "35B 4-8", "27B 5-8",
        "r/LocalLLaMA: 3.5-35B in 4 bits 60 to 70"),
    Row("--unified 'M3 Ultra:96' --backend metal", "35B 4-8", "Flash 4", "35B 4-8", "Flash 4",
        "github.com/sudoingX/qwen38-mtp: 3.8-27B 22.8"),
    Row("--unified 'M3 Max:128' --backend metal", "35B 4", "Flash 4", "35B 4-8", "Flash 4",
        "github.com/ggml-org/llama.cpp/issues/27836: Flash-Next UD-IQ4_XS 27.4"),
    Row("--unified 'M5 Max:128' --backend metal", "35B 4-8", "Flash 4", "35B 4-8", "Flash 4",
        "runyard.dev: 3.5-122B 60.6 at 16K (MLX)"),
    Row("--unified 'M3 Ultra:512' --backend metal", "35B 4-8", "Flash 4-8", "35B 6-8", "Flash 4-8",
        "github.com/raullenchai/Rapid-MLX/issues/472: 3.6-35B in 8 bits 72 to 75 (MLX)"),
    # GPUs in the CPU, and chips whose GPU uses all of the RAM
    Row("--unified 'Radeon 780M:16' --backend vulkan", "4B 4 / 2B 4-8 / 9B 4", "9B 4 / 4B 4", "4B 4-8 / 9B 4",
        "9B 4-5 / 4B 6-8", "github.com/brand-o/normiebench/issues/10: an 8B in Q4_K_M 16.3"),
    Row("--unified 'Radeon 780M:24' --backend vulkan", "9B 4 / 4B 4", "9B 4", "9B 4-8 / 4B 4-8", "9B 4-8"),
    Row("--unified 'Radeon 780M:32' --backend vulkan", "35B 4", "35B 4", "35B 3-4", "35B 4-6",
        "github.com/sudoingX/qwen38-mtp/pull/69: 3.8-27B 4.1: too slow to read along"),
    Row("--unified 'Iris Xe:16' --backend vulkan", "4B 4 / 2B 4-8 / 9B 4", "9B 4 / 4B 4", "4B 4-8 / 9B 4",
        "9B 4-5 / 4B 6-8", "github.com/AlexsJones/llmfit/pull/868: a 4B 8 to 9"),
    Row("--unified 'Steam Deck:16' --backend vulkan", "9B 4 / 4B 4 / 2B 4-8", "4B 4 / 9B 4", "4B 4-8 / 9B 4",
        "9B 4-5 / 4B 6-8"),
    Row("--unified 'Radeon 8060S:64' --backend vulkan", "35B 4", "35B 4-8 / 27B 4-6", "35B 4-8", "27B 4-8",
        "github.com/ggml-org/llama.cpp/issues/20354: 3.5-27B Q4_K_M 11.9"),
    Row("--unified 'Radeon 8060S:128' --backend vulkan", "35B 4", "Flash 4", "35B 4-8", "Flash 4",
        "strix-halo-llamacpp#12: Flash-Next UD-Q4_K_XL 22; r/LocalLLaMA: 3.5-35B Q8_0 38.5"),
    Row("--unified 'NVIDIA GB10:128' --backend cuda", "35B 4", "Flash 4", "35B 4-8", "Flash 4",
        "github.com/ggml-org/llama.cpp/pull/29761: Flash-Next UD-IQ4_XS 28.4"),
    # No GPU
    Row("--vram 0 --ram 8", "2B 4-8", "2B 4-8 / 4B 4", "2B 4-8 / 4B 4", "4B 4 / 2B 4-8"),
    Row("--vram 0 --ram 16", "4B 4 / 2B 4-8", "4B 4 / 9B 4", "4B 4-8", "9B 4 / 4B 4-8"),
    Row("--vram 0 --ram 32", "35B 4", "35B 4", "35B 4", "35B 4-5",
        "bkataru.github.io: 3.5-35B UD-Q4_K_XL 5.6 with 30 GB of DDR4"),
    Row("--vram 0 --ram 64", "35B 4", "35B 4", "35B 4", "35B 6-8",
        "bkataru.github.io: 3.5-35B 18.4 in Q4_K_M, 13.1 in Q8_0 with DDR5-6000"),
    Row("--vram 0 --ram 96", "35B 4", "35B 4 / Flash 4", "35B 4", "35B 6-8 / Flash 4",
        "bkataru.github.io: 3.5-35B Q8_0 13.1 with DDR5-6000"),
    Row("--vram 0 --ram 128", "35B 4", "35B 4 / Flash 4", "35B 4", "35B 6-8 / Flash 4"),
    # Servers
    Row("--gpu 'NVIDIA A100 80GB PCIe:80' --ram 256", "35B 4-8", "Flash 4", "35B 6-8", "Flash 4"),
    Row("--gpu 'NVIDIA H100 PCIe:80' --gpu 'NVIDIA H100 PCIe:80' --ram 512", "35B 4-8", "Flash 4", "35B 6-8",
        "Flash 4-8"),
)  # fmt: skip


@functools.cache
def pc_of(row: Row) -> Pc:
    """Return the PC as `qwendesk recommend` plans for it, with 1 GB of each GPU kept free."""
    parser = argparse.ArgumentParser()
    add_made_up_pc_options(parser)
    machine = made_up_machine(parser.parse_args(shlex.split(row.pc)), GIB)
    return make_pc(machine.devices, machine.ram_total_bytes, GIB)


def bits_of(quant: str) -> int:
    """Return the bits of a quant by its name: 4 for UD-IQ4_XS."""
    found = re.search(r"(?:Q|FP)(\d)", quant)
    assert found is not None, quant
    return int(found[1])


def is_expected(choice: Choice, expected: str) -> bool:
    """Return whether a choice is one of those that are right."""
    for each in expected.split(" / "):
        model, *kind, bits = each.split(" ")
        least, _, most = bits.partition("-")
        is_of_kind = all(word in choice.quant.quant for word in kind)
        has_bits = int(least) <= bits_of(choice.quant.quant) <= int(most or least)
        if choice.offer.id == _MODELS[model] and is_of_kind and has_bits:
            return True
    return False
