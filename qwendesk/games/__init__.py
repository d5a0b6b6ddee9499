"""Game mode: the model makes room while another program needs the graphics card, and comes back afterwards.

Room for games
--------------
`games/service.py` looks every two seconds and hands what it saw, one `Observation`, to the pure rules in
`games/rules.py`. They name the program that needs the card, if any: one that the user listed, or one that took much
video memory (as the meters know) until it ran short. Two looks must agree, and three before the model comes back.
Nothing is asked of the system that no rule needs: names of processes only with a list (`hardware/programs.py`), full
screen only when memory is short (`hardware/probes/full_screen.py`). The model is then unloaded as after an idle time,
and `EngineService.hold_questions` lets questions wait in place of loading it; or it is loaded with its experts on the
CPU. A load by the user wins: the programs that run then are accepted until they end. Once there is room, Ollama and
LM Studio on this PC are asked what they hold, and the notice offers to unload that too (`remote/loaded_models.py`).
"""
