"""Live readings while a model runs: memory, spill, speed, and spill remedies.

A look at the hardware
----------------------
Once a second (every five while the window is hidden) `meters/` asks `hardware/snapshot_reader.py` on another thread. It
asks every probe of this system, joins what they say of one GPU by PCI address or LUID, and returns one Snapshot in
which None means unknown. `hardware/spill.py` turns the samples of each GPU into a state: shared memory of the engine's
process beyond a baseline taken right after the load, checked against what the engine reported. While a model spills,
`meters/spill_remedies.py` finds the changes that free enough; one is applied after the current answer by one reload.
Answers are counted as they pass between client and chat (`engine/answer_meter.py`).

Why this speed
--------------
The worker times the engine and the sampler of each answer (`AnswerTiming` in core/stats.py). `meters/why_service.py`
joins that with what a token has to read (`hardware/token_reads.py`) and, when asked to, with how fast this PC's CPU
reads exactly that (the stream loop, `engine/worker/stream.py`). The rules of `meters/why.py` split a token's time by
cause and name what costs most; `why_text.py` has the words. `python -m bench.why` checks them on real answers.
"""
