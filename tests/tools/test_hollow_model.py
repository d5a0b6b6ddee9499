"""Hollow models: real dimensions, hardly any disk, and loadable when they are asked to be."""

import sys
from pathlib import Path

import pytest

from qwendesk.hub.gguf import read_facts
from tools.hollow_model import write_hollow
from tools.qwen_header import REAL_SIZES

SEEN_GB = {"35b": (19, 22), "122b": (68, 77), "27b": (14.5, 17), "9b": (4.9, 6), "4b": (2, 3), "2b": (0.9, 1.4)}
"""What published Q4_K_M files take, from and to."""


@pytest.mark.parametrize("size", list(SEEN_GB))
def test_sizes_are_those_of_published_files(size: str, tmp_path: Path) -> None:
    facts = read_facts(write_hollow(tmp_path / "model.gguf", size))

    low, high = SEEN_GB[size]
    assert low < facts.file_bytes / 2**30 < high
    assert facts.block_count == REAL_SIZES[size].block_count
    assert facts.vocab_size == 248_320


@pytest.mark.skipif(sys.platform == "win32", reason="NTFS makes a hole only when it is asked to")
def test_tensor_data_is_a_hole_in_the_file(tmp_path: Path) -> None:
    path = write_hollow(tmp_path / "model.gguf", "122b")

    assert path.stat().st_blocks * 512 < 2**20


def test_a_next_token_layer_is_one_more_block(tmp_path: Path) -> None:
    facts = read_facts(write_hollow(tmp_path / "model.gguf", "4b", nextn_layers=1))

    assert (facts.block_count, facts.nextn_layers, facts.attention_layers) == (33, 1, 8)
