"""How a model is loaded with its experts on the CPU, or why it isn't."""

import msgspec
import pytest

from qwendesk.core.failures import LoadFailure
from qwendesk.core.units import GIB
from qwendesk.engine.protocol import LoadReport
from qwendesk.games.rules import experts_on_cpu
from tests.fakes.gaming_pc import REPORT
from tests.gguf_files import dense_27b, mmproj_facts, moe_35b

ON_CPU_ALONE = msgspec.structs.replace(REPORT, allocations=REPORT.allocations[1:])
MOVED = msgspec.structs.replace(REPORT, options=msgspec.structs.replace(REPORT.options, n_cpu_moe=40))


async def test_all_experts_move_and_the_rest_stays() -> None:
    options = await experts_on_cpu(REPORT, lambda _options: (moe_35b(), mmproj_facts()), 46 * GIB)
    assert options == msgspec.structs.replace(REPORT.options, n_cpu_moe=40, load_mode="none")


@pytest.mark.parametrize(
    ("report", "headers", "ram_gib"),
    [
        (REPORT, (dense_27b(), None), 46),
        (REPORT, (moe_35b(), None), 19),
        (ON_CPU_ALONE, (moe_35b(), None), 46),
        (MOVED, (moe_35b(), None), 46),
        (REPORT, LoadFailure("missing_file", "Not found", "The file is gone."), 46),
    ],
    ids=["dense", "too little RAM", "no GPU", "moved already", "unreadable"],
)
async def test_nothing_to_move(report: LoadReport, headers: object, ram_gib: int) -> None:
    assert await experts_on_cpu(report, lambda _options: headers, ram_gib * GIB) is None
