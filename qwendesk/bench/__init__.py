"""The bench feature: measures models on this PC, for the Bench page and `qwendesk bench`.

A measurement
-------------
`bench/bench_runs.py` lets one measurement run at a time: it unloads the chat's model, hands out a `BenchEngine`
(`bench_engine.py`), a client of its own that loads only what the planner allows, and loads the chat's model again. The
worker measures on a Bench request: `worker/speed_bench.py` as llama-bench does, `worker/text_score.py` as
llama-perplexity does, in a second context with rows of logits; `worker/text_score.py` has the format of a saved base.
`bench/speeds.py` puts tests together to a run, for the page and for `cli/bench.py`. `bench/auto_tune.py` measures one
set of load options after the other; what comes next is decided by the pure rules of `tune_rules.py`, and
`engines/engine_watch.py` tells it whether a run spilled. `bench/compare.py` answers one prompt with several columns,
with the chat's engine if they differ only in sampling, otherwise with a `BenchEngine`; `comparison.py` compares the
answers. `bench/` is the feature; the folder `bench/` beside the package has the project's own measurements.
"""
