"""`qwendesk bench --tune`: finds faster load options for a model, and prints what was tried and what it gained."""

import argparse
from contextlib import AsyncExitStack

import msgspec

from qwendesk.bench.auto_tune import AutoTune, TuneState
from qwendesk.bench.bench_runs import BenchRuns
from qwendesk.bench.memory_watch import SpillWatches
from qwendesk.bench.tune_text import TuneLine, result_sentence, tune_lines
from qwendesk.cli.terminal import Interrupts, Terminal
from qwendesk.core.options import LoadOptions
from qwendesk.core.translation import tr

EXIT_TUNED, EXIT_NOT_MEASURED = 0, 4


async def tune(options: argparse.Namespace, load: LoadOptions, terminal: Terminal, interrupts: Interrupts) -> int:
    """Tune the model, print each set of options once it was tried, and return the exit status."""
    from qwendesk.cli.bench import planner_of_this_pc
    from qwendesk.settings.profiles import ProfilesService

    async def no_chat(_model: str) -> None:
        """There is no chat that would have to load the model again."""

    make_client, planner = await planner_of_this_pc()
    async with AsyncExitStack() as closing:
        profiles = ProfilesService()
        closing.push_async_callback(profiles.close)
        watches = SpillWatches(planner.app)
        closing.callback(watches.close)
        service = AutoTune(
            BenchRuns(None, make_client, planner.check),
            profiles,
            make_plan=planner.plan,
            read_facts=planner.facts,
            make_watch=watches.watch,
            reload=no_chat,
        )
        interrupts.on_request(service.stop)
        printed = 0

        def show(state: TuneState) -> None:
            nonlocal printed
            lines = tune_lines(state)
            for line in lines[printed:]:
                terminal.write(f"{_line_text(line)}\n")
            printed = len(lines)

        service.state.subscribe(show)
        await service.run(profiles.applied(load), may_change_answers=options.tune_cache)
        state = service.state.value
        if state.failure:
            terminal.note(state.failure)
            return EXIT_NOT_MEASURED
        terminal.write(f"\n{result_sentence(state)}\n")
        if state.offers:
            changes = {**state.also_kept, **state.offers[0].changes}
            terminal.write(" ".join(f"--set {key}={_value_text(value)}" for key, value in changes.items()) + "\n")
            if options.save_profile and state.found is not None:
                await service.use()
                terminal.write(tr("Saved as the profile “Auto-tuned”.") + "\n")
    return EXIT_TUNED


def _line_text(line: TuneLine) -> str:
    speeds = tr("{0} tok/s, prompts {1} tok/s", line.answer, line.prompt) if line.answer else ""
    return "  ".join(part for part in (line.name, speeds, line.remark) if part)


def _value_text(value: object) -> str:
    """Return a value as `--set` takes it."""
    if isinstance(value, tuple | list):
        return ",".join(str(each) for each in value)
    return msgspec.json.encode(value).decode().strip('"')
