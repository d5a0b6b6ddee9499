"""Live readings while a model runs: memory, spill, speed, and spill remedies.

A look at the hardware
----------------------
Once a second (every five while the window is hidden) `meters/` asks `hardware/snapshot_reader.py` on another thread. It
asks every probe of this system, joins what they say of one GPU by PCI address or LUID, and returns one Snapshot in
which None means unknown. `hardware/spill.py` turns the samples of each GPU into a state: shared memory of the engine's
process beyond a baseline taken right after the load, checked against what the engine reported. While a model spills,
`meters/spill_remedies.py` finds the changes that free enough; one is applied after the current answer by one reload.
Answers are counted as they pass between client and chat (`engine/answer_meter.py`).
"""
