"""`qwendesk serve` with the scripted engine in place of a model: `python -m tools.clients.serve OPTION...`."""

import sys
from unittest.mock import patch

from qwendesk.cli import main, serve
from qwendesk.engines.engine_choice import EngineChoiceService, installed_engines
from tools.clients.scripted_engine import ScriptedEngine


class ScriptedEngines(EngineChoiceService):
    """This PC's engines, of which the scripted one is used."""

    def client(self) -> ScriptedEngine:  # type: ignore[override]
        return ScriptedEngine()


async def scripted_engines() -> EngineChoiceService:
    engines = installed_engines()
    engines.__class__ = ScriptedEngines
    return engines


if __name__ == "__main__":
    with patch.object(serve, "preferred_engine", scripted_engines):
        sys.exit(main.main(["serve", *sys.argv[1:]]))
