"""Tables of the GGUF format: tensor types with block sizes, value types, quants and model architectures.

From the llama.cpp of llama-cpp-python 0.3.36 (ggml_type_name, ggml_blck_size, ggml_type_size; llama.h for the file
types). A test compares them with the `gguf` package.
"""

import re
import struct
import types
from collections.abc import Mapping

import msgspec

from qwendesk.core.file_names import quants_in


class TensorType(msgspec.Struct, frozen=True):
    """One ggml type: `block` elements take `n_bytes` bytes."""

    name: str
    block: int
    n_bytes: int


# By ggml's number. Missing numbers were removed from llama.cpp.
TENSOR_TYPES: Mapping[int, TensorType] = types.MappingProxyType(
    {
        0: TensorType("F32", 1, 4),
        1: TensorType("F16", 1, 2),
        2: TensorType("Q4_0", 32, 18),
        3: TensorType("Q4_1", 32, 20),
        6: TensorType("Q5_0", 32, 22),
        7: TensorType("Q5_1", 32, 24),
        8: TensorType("Q8_0", 32, 34),
        9: TensorType("Q8_1", 32, 36),
        10: TensorType("Q2_K", 256, 84),
        11: TensorType("Q3_K", 256, 110),
        12: TensorType("Q4_K", 256, 144),
        13: TensorType("Q5_K", 256, 176),
        14: TensorType("Q6_K", 256, 210),
        15: TensorType("Q8_K", 256, 292),
        16: TensorType("IQ2_XXS", 256, 66),
        17: TensorType("IQ2_XS", 256, 74),
        18: TensorType("IQ3_XXS", 256, 98),
        19: TensorType("IQ1_S", 256, 50),
        20: TensorType("IQ4_NL", 32, 18),
        21: TensorType("IQ3_S", 256, 110),
        22: TensorType("IQ2_S", 256, 82),
        23: TensorType("IQ4_XS", 256, 136),
        24: TensorType("I8", 1, 1),
        25: TensorType("I16", 1, 2),
        26: TensorType("I32", 1, 4),
        27: TensorType("I64", 1, 8),
        28: TensorType("F64", 1, 8),
        29: TensorType("IQ1_M", 256, 56),
        30: TensorType("BF16", 1, 2),
        34: TensorType("TQ1_0", 256, 54),
        35: TensorType("TQ2_0", 256, 66),
        39: TensorType("MXFP4", 32, 17),
        40: TensorType("NVFP4", 64, 36),
        41: TensorType("Q1_0", 128, 18),
        42: TensorType("Q2_0", 64, 18),
    }
)

# Numbers of types that llama.cpp had and has removed.
REMOVED_TYPES = frozenset({4, 5, 31, 32, 33, 36, 37, 38})
# Programs made from llama.cpp whose files it can't load.
PRISM_ML = "PrismML's llama.cpp (github.com/PrismML-Eng/llama.cpp)"
IK_LLAMA = "ik_llama.cpp (github.com/ikawrakow/ik_llama.cpp)"
# From this number on types belong to such programs: llama.cpp itself counts up from 0 and has reached 42.
FORK_TYPES = range(100, 400)
# PQ2_0 and PTQ1_0 (ggml-org/llama.cpp#29058, 2026-09-18).
_PRISM_ML_TYPES = frozenset({142, 143})
# From Q6_0 to IQ1_KT, and layouts for CPUs such as Q4_K_R4 (ggml.h of ik_llama.cpp).
_IK_LLAMA_TYPES = (*range(133, 142), *range(144, 159), *range(202, 234), *range(335, 400))
# Quants in file names, as those programs call them. The others are llama.cpp's.
_PRISM_ML_QUANT = re.compile(r"PQ2_0|PTQ1_0")
_IK_LLAMA_QUANT = re.compile(r"Q6_0|IQ[2-6]_K|IQ[2-5]_KS|IQ4_KSS|IQ2_KL|IQ[1-4]_KT|IQ[12]_BN|.+_R(?:4|8|16)")

# Metadata value types of fixed size, by GGUF's number.
VALUE_LAYOUTS: Mapping[int, struct.Struct] = types.MappingProxyType(
    {
        0: struct.Struct("<B"),
        1: struct.Struct("<b"),
        2: struct.Struct("<H"),
        3: struct.Struct("<h"),
        4: struct.Struct("<I"),
        5: struct.Struct("<i"),
        6: struct.Struct("<f"),
        7: struct.Struct("<?"),
        10: struct.Struct("<Q"),
        11: struct.Struct("<q"),
        12: struct.Struct("<d"),
    }
)
TEXT_VALUE = 8
LIST_VALUE = 9

# Usual names of `general.file_type`.
FILE_TYPES: Mapping[int, str] = types.MappingProxyType(
    {
        0: "F32",
        1: "F16",
        2: "Q4_0",
        3: "Q4_1",
        7: "Q8_0",
        8: "Q5_0",
        9: "Q5_1",
        10: "Q2_K",
        11: "Q3_K_S",
        12: "Q3_K_M",
        13: "Q3_K_L",
        14: "Q4_K_S",
        15: "Q4_K_M",
        16: "Q5_K_S",
        17: "Q5_K_M",
        18: "Q6_K",
        19: "IQ2_XXS",
        20: "IQ2_XS",
        21: "Q2_K_S",
        22: "IQ3_XS",
        23: "IQ3_XXS",
        24: "IQ1_S",
        25: "IQ4_NL",
        26: "IQ3_S",
        27: "IQ3_M",
        28: "IQ2_S",
        29: "IQ2_M",
        30: "IQ4_XS",
        31: "IQ1_M",
        32: "BF16",
        36: "TQ1_0",
        37: "TQ2_0",
        38: "MXFP4_MOE",
        39: "NVFP4",
        40: "Q1_0",
        41: "Q2_0",
    }
)
# Flag in `general.file_type`: it was guessed from the tensors.
FILE_TYPE_GUESSED = 1024


_ARCHITECTURE_NAMES = """
    afmoe apertus arcee arctic arwkv7 baichuan bailingmoe bailingmoe2 bailingmoe3 bert bitnet bloom chameleon
    chatglm codeshell cogvlm cohere2 cohere2moe command-r dbrx deci deepseek deepseek2 deepseek2-ocr deepseek32
    deepseek4 dflash dots1 dots3note dream eagle3 ernie4_5 ernie4_5-moe eurobert exaone exaone-moe exaone4
    falcon falcon-h1 gemma gemma-embedding gemma2 gemma3 gemma3n gemma4 gemma4-assistant glm-dsa glm4 glm4moe
    glm5-next gpt-oss gpt2 gptj gptneox granite granite_swa granitehybrid granitemoe graniteswitch grok grovemoe
    hrm_text hunyuan-dense hunyuan-moe hunyuan_vl hy_v3 hy_v4 internlm2 jais jais2 jamba jina-bert-v2
    jina-bert-v3 kimi-k3 kimi-linear laguna lfm2 lfm2moe llada llada-moe llama llama-embed llama4 maincoder
    mamba mamba2 maple mellum mimo2 minicpm minicpm3 minimax-01 minimax-m2 minimax-m3 mistral3 mistral4
    modern-bert mpt muse-glimmer nanbeige nemotron nemotron_h nemotron_h_moe neo-bert nomic-bert nomic-bert-moe
    olmo olmo2 olmoe openelm orion paddleocr pangu-embedded phi2 phi3 phimoe plamo plamo2 plamo3 plm pockettts
    qwen qwen2 qwen2moe qwen2vl qwen3 qwen35 qwen35moe qwen3moe qwen3next qwen3tts qwen3vl qwen3vlmoe qwen4exp
    refact rnd1 rwkv6 rwkv6qwen2 rwkv7 seed_oss smallthinker smollm3 spark2_5 stablelm starcoder starcoder2
    step35 t5 t5encoder talkie wavtokenizer-dec xverse
"""

# Of models that only speed up others by speculative decoding.
DRAFT_ARCHITECTURES = ("dflash", "eagle3")
# `general.architecture` of every model that the engine loads. "clip" is not among them: it means an mmproj.
SUPPORTED_ARCHITECTURES = frozenset(_ARCHITECTURE_NAMES.split())


def program_for_type(type_number: int) -> str:
    """Return the program made from llama.cpp that has this tensor type, with its address; "" if unknown."""
    if type_number in _PRISM_ML_TYPES:
        return PRISM_ML
    return IK_LLAMA if type_number in _IK_LLAMA_TYPES else ""


def program_for_quant(quant: str) -> str:
    """Return the program that a quant, named as in file names, was made for, with its address; "" for llama.cpp's."""
    plain = quant.removesuffix("-MTP")
    if _PRISM_ML_QUANT.fullmatch(plain):
        return PRISM_ML
    return IK_LLAMA if _IK_LLAMA_QUANT.fullmatch(plain) else ""


def quant_name(file_type: int, file_name: str) -> str:
    """Return the usual name of the quant: "Q4_K_M", or "UD-Q4_K_XL" if the file's name is more specific.

    Files may be renamed, so the file name counts only if its number of bits is that of the header. `file_type` is -1 if
    the header has none. Return "" if the quant is unknown.
    """
    header = FILE_TYPES.get(file_type & ~FILE_TYPE_GUESSED, "") if file_type >= 0 else ""
    in_name = quants_in(file_name)
    if not header:
        return in_name[-1] if in_name else ""
    return next((quant for quant in reversed(in_name) if _bits(quant) == _bits(header)), header)


def _bits(quant: str) -> str:
    """Return the number of bits in the name: "4" for "UD-Q4_K_XL" and "MXFP4"; the whole name for float types."""
    plain = quant.removeprefix("UD-").removesuffix("-MTP")
    if plain in ("F16", "BF16", "F32", "NVFP4"):
        return plain
    number = re.search(r"\d+", plain)
    return number.group() if number else plain
