"""Trains the demo model: first its eyes alone, then eyes and language together."""

import math
import random
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tools.demo_model import dimensions as d
from tools.demo_model.batches import Batch, BatchMaker, Pictures, Step, streamed
from tools.demo_model.drawing import BACKGROUNDS, COLOURS, SHAPES, Shown
from tools.demo_model.starting_files import read_weights
from tools.demo_model.text_network import TextNetwork
from tools.demo_model.tokens import Tokens
from tools.demo_model.topics import read_knowledge
from tools.demo_model.vision_network import VisionNetwork

WARM_UP_STEPS, JOINT_STEPS = 2000, 5500
"""The eyes alone, then eyes and language."""
_WARM_UP_RATE, _JOINT_RATE, _VISION_SHARE = 1.5e-3, 2.5e-3, 0.3
"""Learning rates; while both learn, the vision encoder's is this share of the other."""
FURTHER_STEPS, FURTHER_RATE = 3000, 1.5e-3
"""Of a training that goes on from finished files, eyes and language together; the rate is the highest one."""
_PICTURE_SHARE = 0.3
"""Of the joint steps, once they have begun."""
_BALANCE = 0.02
_NAMING = 0.2
"""How much the heads that name pictures count beside the text."""
_SAVE_EVERY = 500

Say = Callable[[str], None]


class Naming(nn.Module):
    """Names what a picture shows from the encoder's vectors, so that the encoder learns without the language model.

    It sees their mean and their maximum: from the mean alone, shapes were not learnt."""

    def __init__(self) -> None:
        super().__init__()
        self._answers = (list(COLOURS), list(SHAPES), list(BACKGROUNDS))
        self.head = nn.Linear(2 * d.HIDDEN, sum(map(len, self._answers)) + 2)

    def forward(self, vectors: Tensor, shown: Sequence[Shown | None]) -> Tensor:
        """The loss: colour, shape and background where there is a shape, and whether there is one."""
        sizes = [len(answers) for answers in self._answers]
        *named, is_shape = self.head(torch.cat([vectors.mean(1), vectors.amax(1)], -1)).split([*sizes, 2], -1)
        has_shape = torch.tensor([each is not None for each in shown])
        loss = F.cross_entropy(is_shape, has_shape.long())
        known = [each for each in shown if each]
        if not known:
            return loss
        texts = [[each.colour for each in known], [each.shape for each in known], [each.background for each in known]]
        for scores, answers, right in zip(named, self._answers, texts, strict=True):
            loss = loss + F.cross_entropy(scores[has_shape], torch.tensor([answers.index(text) for text in right]))
        return loss


class DemoModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.text, self.vision, self.naming = TextNetwork(), VisionNetwork(), Naming()


def train(
    tokenizer: Path,
    checkpoint: Path,
    *,
    begin_with: tuple[Path, Path] | None = None,
    n_further: int = FURTHER_STEPS,
    further_rate: float = FURTHER_RATE,
    missed: Collection[str] = (),
    seed: int = 0,
    say: Say = print,
) -> None:
    """Writes the trained weights to `checkpoint`; goes on from its last save when it is there.

    `begin_with` are finished files, model and mmproj, whose weights are trained for `n_further` steps at up to
    `further_rate`; None: from nothing. The wordings in `missed` are asked more often. The same seed gives the same
    batches, unless it was interrupted; sums of floats differ a little between machines.
    """
    torch.manual_seed(seed)
    torch.set_num_threads(2)
    model = DemoModel().train()
    tokens, knowledge = Tokens(tokenizer), read_knowledge()
    if checkpoint.exists():
        state = torch.load(checkpoint)
        model.load_state_dict(state["model"])
    else:
        if begin_with:
            say(f"These begin anew: {', '.join(read_weights(*begin_with, model))}.")
        else:
            _warm_up(model, BatchMaker(tokens, knowledge, f"{seed}, pictures"), say)
        state = {"model": model.state_dict(), "step": 0}
        _save(state, checkpoint)
    maker = BatchMaker(tokens, knowledge, f"{seed}, from step {state['step']}", missed)
    plan = _joint_plan(random.Random(seed), n_further if begin_with else JOINT_STEPS, is_new=not begin_with)
    _learn_together(model, maker, plan, further_rate if begin_with else _JOINT_RATE, state, checkpoint, say)


def _warm_up(model: DemoModel, maker: BatchMaker, say: Say) -> None:
    """The eyes alone: large upright shapes first."""
    learning = [*model.vision.named_parameters(), *model.naming.named_parameters()]
    optimizer = _optimizer(learning)
    easy = round(WARM_UP_STEPS * 0.35)
    plan = [Step("easy pictures" if step < easy else "pictures", 0.5) for step in range(WARM_UP_STEPS)]
    report = _Report("pictures", WARM_UP_STEPS, say)
    for step, pictures in enumerate(streamed(maker, plan)):
        assert isinstance(pictures, Pictures)
        rate = _WARM_UP_RATE * min(1, (step + 1) / 100) * (1 - 0.9 * step / WARM_UP_STEPS)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            vectors = model.vision(pictures.patches, pictures.high, pictures.wide)
        loss = model.naming(vectors.float(), pictures.shown)
        _improve(optimizer, loss, rate, learning)
        report.add(step, "naming", loss.item())


def _learn_together(
    model: DemoModel,
    maker: BatchMaker,
    plan: Sequence[Step],
    highest_rate: float,
    state: dict[str, Any],
    checkpoint: Path,
    say: Say,
) -> None:
    learning = list(model.named_parameters())
    optimizer = _optimizer(learning)
    if "optimizer" in state:
        optimizer.load_state_dict(state["optimizer"])
    first = state["step"]
    report = _Report("text and pictures", len(plan), say)
    for step, batch in enumerate(streamed(maker, plan[first:]), first):
        assert isinstance(batch, Batch)
        text_loss, others = _losses(model, batch)
        _improve(optimizer, text_loss + others, highest_rate * _share(step, len(plan)), learning)
        report.add(step, "with pictures" if batch.pictures else "text", text_loss.item())
        if (step + 1) % _SAVE_EVERY == 0 or step + 1 == len(plan):
            _save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step + 1}, checkpoint)


def _share(step: int, n_steps: int) -> float:
    """Of the highest rate: half a wave of a cosine after a short rise, down to nothing."""
    return min(1, (step + 1) / 60) * 0.5 * (1 + math.cos(math.pi * step / n_steps))


def _save(state: dict[str, Any], checkpoint: Path) -> None:
    """Whole or not at all."""
    part = checkpoint.with_suffix(".part")
    torch.save(state, part)
    part.replace(checkpoint)


def _joint_plan(rng: random.Random, n_steps: int, *, is_new: bool) -> list[Step]:
    """Few pictures while the language is new; more of the stretched ones towards the end."""
    plan = []
    for progress in (step / n_steps for step in range(n_steps)):
        has_picture = rng.random() < _PICTURE_SHARE * (min(1, 0.1 + progress / 0.12) if is_new else 1)
        plan.append(Step("chats with pictures", 0.5 + 0.25 * progress) if has_picture else Step("text"))
    return plan


def _losses(model: DemoModel, batch: Batch) -> tuple[Tensor, Tensor]:
    """Of the text, and of what only helps: the experts' balance and the naming of pictures."""
    naming = torch.zeros(())
    vectors = None
    with torch.autocast("cpu", dtype=torch.bfloat16):
        if batch.pictures:
            vectors = model.vision(batch.pictures.patches, batch.pictures.high, batch.pictures.wide)
        hidden, balance = model.text(batch.tokens, batch.positions, vectors, batch.is_picture)
        learnt = batch.targets >= 0
        scores = model.text.output(hidden[learnt]).float()
        guesses = _guessing_loss(model, batch, hidden)
    if batch.pictures and vectors is not None:
        naming = model.naming(vectors.float(), batch.pictures.shown)
    return F.cross_entropy(scores, batch.targets[learnt]), _BALANCE * balance + _NAMING * naming + guesses


def _guessing_loss(model: DemoModel, batch: Batch, hidden: Tensor) -> Tensor:
    """Of the draft head. It learns from chats without pictures, because the engine does not show it any."""
    loss = torch.zeros(())
    if batch.pictures:
        return loss
    learnt = batch.targets >= 0
    output = model.text.output.weight.detach()
    for guess, balance in islice(model.text.guesses(batch.tokens, batch.positions, hidden), d.DRAFTS):
        scores = F.linear(guess[learnt], output).float()
        loss = loss + F.cross_entropy(scores, batch.targets[learnt]) + _BALANCE * balance
    return loss


def _optimizer(learning: Iterable[tuple[str, nn.Parameter]]) -> torch.optim.Optimizer:
    """AdamW; matrices decay, but not what embeds tokens, patches or positions; scales and biases do not."""
    groups: dict[tuple[bool, bool], list[nn.Parameter]] = {}
    for name, parameter in learning:
        decays = parameter.dim() >= 2 and "embd" not in name
        groups.setdefault((decays, name.startswith("vision.")), []).append(parameter)
    return torch.optim.AdamW(
        [
            {"params": members, "weight_decay": 0.05 if decays else 0.0, "share": _VISION_SHARE if is_vision else 1.0}
            for (decays, is_vision), members in groups.items()
        ],
        betas=(0.9, 0.98),
        eps=1e-9,
    )


def _improve(
    optimizer: torch.optim.Optimizer, loss: Tensor, rate: float, learning: Sequence[tuple[str, nn.Parameter]]
) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate * group["share"]
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_([parameter for _, parameter in learning if parameter.grad is not None], 1.0)
    optimizer.step()


class _Report:
    """Says every hundred steps how it goes."""

    def __init__(self, what: str, n_steps: int, say: Say) -> None:
        self._what, self._n_steps, self._say = what, n_steps, say
        self._began = time.monotonic()
        self._first: int | None = None
        self._losses: dict[str, list[float]] = {}

    def add(self, step: int, name: str, loss: float) -> None:
        if self._first is None:
            self._first = step
        self._losses.setdefault(name, []).append(loss)
        if (step + 1) % 100:
            return
        means = ", ".join(f"{name} {sum(losses) / len(losses):.4f}" for name, losses in self._losses.items())
        pace = (time.monotonic() - self._began) / (step + 1 - self._first)
        left = pace * (self._n_steps - step - 1) / 60
        self._say(f"{self._what}: step {step + 1} of {self._n_steps}, loss {means}, {left:.0f} min left")
        self._losses = {}
