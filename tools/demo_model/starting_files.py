"""Weights and tokenizer of finished files, so that training can go on from them: the inverse of exporting."""

from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from tools.demo_model.tokens import write_tokenizer


def read_tokenizer(model: Path, tokenizer: Path) -> None:
    """Writes the tokenizer of `model` to `tokenizer`. Raises OSError or ValueError for a file that is none."""
    fields = gguf.GGUFReader(model).fields
    write_tokenizer(
        fields["tokenizer.ggml.tokens"].contents(),
        [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"].contents()],
        tokenizer,
    )


def read_weights(model: Path, mmproj: Path, network: nn.Module) -> list[str]:
    """Gives `network` the weights of the files. What they lack stays as it is and is named in what comes back."""
    found = _weights(model) | {f"vision.{name}": value for name, value in _weights(mmproj).items()}
    missing = []
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            value = found.get(name.removeprefix("text.").replace(".attention.", "."))
            if value is None:
                missing.append(name)
            else:
                parameter.copy_(_as_trained(name, value).reshape(parameter.shape))
    return missing


def _weights(path: Path) -> dict[str, npt.NDArray[np.float32]]:
    return {
        each.name.removeprefix("v."): gguf.dequantize(each.data, each.tensor_type).astype(np.float32)
        for each in gguf.GGUFReader(path).tensors
    }


def _as_trained(name: str, value: npt.NDArray[np.float32]) -> Tensor:
    """`exporting` writes a decay as -exp(a), and half of the kernel for each of two frames."""
    if name.endswith("ssm_a"):
        value = np.log(-value)
    if name == "vision.patch_embd.weight":
        value = value * 2
    return torch.from_numpy(value)
