"""The demo model's dimensions, in the architecture of Qwen3.5-35B-A3B (`qwen35moe`, `qwen3vl_merger`)."""

HIDDEN = 128
N_LAYERS = 8
FULL_ATTENTION_EVERY = 4
"""Three layers of linear attention, then one of full attention."""
VOCABULARY = 2048
SIZE_IN_WORDS = "3 million"
"""The parameters of the language model, as it says of itself."""
CONTEXT = 32_768
DRAFTS = 2
"""Tokens that the draft head learns to guess one after the other."""
EPSILON = 1e-6

HEADS, KV_HEADS, HEAD_SIZE = 4, 2, 64
ROTATED, ROPE_BASE = 32, 10_000.0
"""Of each head's 64 values, the first 32 are rotated by the position."""
ROPE_SECTIONS = (6, 5, 5)
"""Pairs that turn with the token's place in time, down, and across."""

LINEAR_KEY_HEADS, LINEAR_VALUE_HEADS, LINEAR_HEAD_SIZE = 2, 4, 32
CONVOLUTION = 4

EXPERTS, EXPERTS_USED, EXPERT_SIZE, SHARED_EXPERT_SIZE = 8, 2, 64, 64

PATCH = 16
"""Pixels along a patch."""
VISION_HIDDEN, VISION_LAYERS, VISION_HEADS, VISION_MLP = 128, 2, 2, 256
VISION_GRID = 16
"""Learnt positions each way; other grids are interpolated."""
