"""NVIDIA's cards and driver in this PC, and which releases of CUDA they can use."""

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from tools.setup.project import ROOT

_QUERY_TIMEOUT_S = 20.0
"""A sleeping card wakes up in a second or two; a driver that hangs is no driver to build for."""
_NEEDS = {12: (525, (5, 0)), 13: (580, (7, 5))}
"""By CUDA's major release: the oldest driver branch and the lowest compute capability.

From NVIDIA's release notes of CUDA 12.0 and 13.0. Capability 7.5 is Turing: GeForce GTX 16 and RTX 20.
"""
_CARDS_OF = {(5, 0): "GeForce GTX 750", (7, 5): "GeForce GTX 16 or RTX 20"}


@dataclass(frozen=True)
class NvidiaCard:
    """One card, as nvidia-smi describes it."""

    name: str
    driver: str
    """Such as "580.65.06"; the same for all cards of a PC."""
    capability: tuple[int, int] | None = None
    """Compute capability, such as (8, 6); None if the driver is too old to tell."""


def nvidia_cards() -> tuple[NvidiaCard, ...]:
    """Return the NVIDIA cards of this PC; none without a driver that answers. Takes up to a second."""
    told = _ask("compute_cap,driver_version,name")
    if told is not None:
        return cards_in(told)
    # Drivers before 510 don't know the field compute_cap.
    return cards_in(_ask("driver_version,name") or "", with_capability=False)


def cards_in(text: str, *, with_capability: bool = True) -> tuple[NvidiaCard, ...]:
    """Return the cards in nvidia-smi's lines, such as `8.6, 580.65.06, NVIDIA GeForce RTX 3090`.

    Without `with_capability`, a line begins with the driver. Lines of another form are left out.
    """
    found = []
    for line in text.splitlines():
        capability, _, rest = line.partition(",") if with_capability else ("", "", line)
        driver, _, name = (part.strip() for part in rest.partition(","))
        if name and driver[:1].isdigit():
            found.append(NvidiaCard(name, driver, _capability(capability)))
    return tuple(found)


def obstacle(cards: Sequence[NvidiaCard], cuda_major: int) -> str:
    """Return why none of these cards can use this release of CUDA, as the second half of a sentence; "" if one can.

    Nothing is known against releases other than 12 and 13, or against a card that doesn't tell its capability.
    """
    if not cards or cuda_major not in _NEEDS:
        return ""
    least_driver, least_capability = _NEEDS[cuda_major]
    driver = cards[0].driver
    if int(driver.split(".")[0]) < least_driver:
        return f"CUDA {cuda_major} needs an NVIDIA driver from {least_driver} on, and this one is {driver}"
    if usable(cards, cuda_major):
        return ""
    names = " and ".join(sorted({card.name for card in cards}))
    return f"CUDA {cuda_major} needs a {_CARDS_OF[least_capability]} or newer, and this PC has {names}"


def usable(cards: Sequence[NvidiaCard], cuda_major: int) -> tuple[NvidiaCard, ...]:
    """Return those of the cards that this release of CUDA has code for."""
    least = _NEEDS[cuda_major][1] if cuda_major in _NEEDS else (0, 0)
    return tuple(card for card in cards if card.capability is None or card.capability >= least)


def has_ready_engine(cards: Sequence[NvidiaCard], platform: str = "windows-x64") -> bool:
    """Return whether the app's list has a CUDA engine for one of these cards and their driver.

    The app itself chooses among them (qwendesk/engines/pack_fit.py); this only tells what will follow.
    """
    packs = json.loads((ROOT / "resources" / "engine_packs.json").read_bytes())["packs"]
    return any(
        pack["platform"] == platform and _numbers(card.driver) >= _numbers(pack["minimum_driver"]) and _runs(pack, card)
        for pack in packs
        for card in cards
    )


def _runs(pack: dict[str, list[str]], card: NvidiaCard) -> bool:
    if card.capability is None:
        return False
    major, minor = card.capability
    built = [divmod(int(each), 10) for each in pack["gpu_architectures"]]
    return any(major == a and b <= minor for a, b in built) or f"{major}{minor}" in pack["compiled_by_driver"]


def _numbers(driver: str) -> tuple[int, ...]:
    return tuple(int(part) for part in driver.split(".") if part.isdecimal())


def architectures(cards: Sequence[NvidiaCard]) -> tuple[str, ...]:
    """Return what CMake calls the code for these cards, such as ("86-real", "89-real")."""
    known = {card.capability for card in cards if card.capability is not None}
    return tuple(f"{major}{minor}-real" for major, minor in sorted(known))


def _ask(fields: str) -> str | None:
    """Return nvidia-smi's answer, a line for each card; None if it is missing, fails or hangs."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    command = [program, f"--query-gpu={fields}", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_QUERY_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _capability(text: str) -> tuple[int, int] | None:
    """Return (8, 6) for "8.6"; None for "[N/A]" and the like."""
    found = re.fullmatch(r"(\d+)\.(\d+)", text.strip())
    return (int(found[1]), int(found[2])) if found else None
