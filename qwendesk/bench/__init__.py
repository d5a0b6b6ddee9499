"""The bench feature: measures models on this PC, for the Bench page and `qwendesk bench`.

A measurement
-------------
`bench/bench_runs.py` lets one measurement run at a time, in the window and for `cli/`: it unloads the chat's model,
hands out a `BenchEngine` (`bench_engine.py`), a client of its own that loads only what the planner allows, and loads
the chat's model again. The worker measures on a Bench request: `worker/speed_bench.py` as llama-bench does,
`worker/text_score.py` as llama-perplexity does, in a second context with rows of logits; `worker/text_score.py` has the
format of a saved base. `bench/speeds.py` puts tests together to a run, for the page, for `cli/bench.py` and for the
trial of this PC. `bench/auto_tune.py` measures one set of load options after the other; what comes next is decided by
the pure rules of `tune_rules.py`, and `memory_watch.py` tells it whether a run spilled. `bench/compare.py` answers one
prompt with several columns, with the chat's engine if they differ only in sampling, otherwise with a `BenchEngine`;
`comparison.py` compares the answers. `bench/` is the feature; the folder `bench/` beside the package has the project's
own measurements.

A trial of this PC
------------------
The section This PC and `qwendesk trial` measure a PC that we don't have. `pc_trial.py` goes through the engines, a CPU
engine first because the others' answers are compared with its own; `model_trial.py` measures one model on one engine
with a client of its own, and gives each step a limit and turns a failure into a sentence. `pc_report.py` has the
values, with a `BenchRecord` of each load as the speed tests keep it, their JSON and the redaction, the page that the
user reads before the report is saved, and the table to share. `tools/trial_report.py` makes tables of many reports.
(`engines/trial.py` is something else: it starts an engine to find out whether it runs.)
"""
