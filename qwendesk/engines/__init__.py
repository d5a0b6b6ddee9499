"""Installed engines, engine packs, trials, and loading and reloading a model.

A failed load, from the error to the button
-------------------------------------------
1. The worker's error, or the planner's refusal, becomes a `LoadFailure` with a kind and a sentence
   (`engine/load_failures.py`, `engines/load_decision.py`).
2. `engines/load_decision.py` chooses the one step that may help, from the steps in `hardware/ladder.py`.
   `EngineService.retry` holds it.
3. `chat/view/banner.py` words the banner: the sentence, the step's button, and the other ways on.

Choosing an engine
------------------
`engines/engine_choice.py` tries the installed engines, each in a process of its own, and chooses one; the window stays
responsive, and a worker that is to start waits for the choice. `packs.py` downloads an engine pack, `pack_file.py`
reads and unpacks one that the user has as a file and `pack_installer.py` keeps it if it runs, `pack_fit.py` tells which
GPUs it is for, and `engine_switch.py` changes the engine after the answer in progress and loads the model again.

When this PC is outgrown
------------------------
`commands/outgrown.py` decides from the model, the cards and their links what the next step is when programs wait at the
local server (`server/requests.py` counts them) or a model doesn't fit; `engines/outgrown_service.py` keeps it up to
date for the Server and the Engine page, and `qwendesk plan` asks it too. The commands for vLLM and SGLang are made in
`commands/safetensors_commands.py`, the split over the cards in `commands/gpu_split.py`.
"""
