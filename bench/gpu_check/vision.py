"""A picture encoded on the GPU and on the CPU by an encoder of real dimensions, and the memory that it takes."""

import hashlib
from functools import partial
from pathlib import Path

from PIL import Image, ImageDraw

from bench.gpu_check.models import Models, changed, running_engine
from bench.gpu_check.steps import Found, Part, Step
from qwendesk.bench.memory_watch import used_on_cards
from qwendesk.core.messages import ImagePart, Message, TextPart
from qwendesk.core.options import LoadOptions
from qwendesk.core.units import MIB
from qwendesk.hub.gguf import read_facts

_SIZES = ((640, 480), (1024, 768), (1920, 1080))


async def _encode(place: str, models: Models) -> Found:
    model = models.random()
    mmproj = models.random_mmproj(read_facts(model).embedding_length)
    rows = []
    async with running_engine() as engine:
        before = sum(used_on_cards())
        plan = await engine.plan(LoadOptions(model=str(model), mmproj=str(mmproj), n_ctx=32_768))
        report = await engine.load(changed(plan.options, vision=place))
        loaded = sum(used_on_cards())
        planned = sum(gpu.vision_bytes for gpu in plan.memory.gpus)
        allocated = sum(row.vision_bytes for row in report.allocations)
        await engine.answer([_question(model.parent, (320, 240), "warm")], 4)
        for size in _SIZES:
            _, stats = await engine.answer([_question(model.parent, size, place)], 8)
            sizes = (planned, allocated, before, loaded, sum(used_on_cards()))
            picture = (place, f"{size[0]}x{size[1]}", str(stats.image_tokens), f"{stats.ttft_s:.2f}")
            rows.append((*picture, *(f"{each / MIB:.0f}" for each in sizes)))
    return Found(tuple(rows))


VISION = Part(
    "vision",
    (
        "encoder on",
        "picture",
        "tokens",
        "s to first token",
        "planned for it, MiB",
        "allocated for it",
        "card before",
        "loaded",
        "after the picture",
    ),
    (
        Step("encoder on the GPU", 45, partial(_encode, "gpu")),
        Step("encoder on the CPU", 90, partial(_encode, "cpu")),
    ),
)


def _question(folder: Path, size: tuple[int, int], name: str) -> Message:
    path = folder / f"{name}-{size[0]}x{size[1]}.png"
    image = Image.new("RGB", size, "white")
    ImageDraw.Draw(image).ellipse((20, 20, size[0] // 2, size[1] // 2), fill="red" if name == "gpu" else "blue")
    image.save(path)
    part = ImagePart(str(path), hashlib.sha256(path.read_bytes()).hexdigest())
    return Message("user", (part, TextPart("What is in this picture?")))
