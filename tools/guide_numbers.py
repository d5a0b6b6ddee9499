"""The numbers in the guide's sentences: sizes, results and reported speeds, from the catalog.

`python tools/guide_pcs.py` writes them into the sentences of every language. A phrase that somebody reworded in the
guide has to be changed here too: the tests find it missing.
"""

import functools
import math
import re
from collections.abc import Iterator

import msgspec

from bench.speeds import CLOSE, FAR, compare
from qwendesk.core.units import GIB
from qwendesk.hardware.model_memory import lazy_table_bytes
from qwendesk.hub.catalog import load_catalog
from tools.guide_tables import catalog_facts

_NUMBER = r"\d+(?:[.,]\d+)?"


class Phrase(msgspec.Struct, frozen=True):
    """Words of a sentence in each language that has the page, with {} for each number."""

    page: str
    english: str
    german: str
    numbers: tuple[str, ...]
    chinese: str = ""

    def _words(self, language: str) -> str:
        return {"en": self.english, "de": self.german, "zh_Hans": self.chinese}[language]

    def written(self, language: str) -> str:
        """Return the phrase with its numbers."""
        numbers = (number.replace(".", ",") if language == "de" else number for number in self.numbers)
        return self._words(language).format(*numbers)

    def write_into(self, text: str, language: str) -> str:
        """Return `text` with the numbers of this phrase, which must stand there once."""
        words = self._words(language)
        pattern = _NUMBER.join(map(re.escape, words.split("{}")))
        changed, count = re.subn(pattern, lambda _: self.written(language), text)
        if count != 1:
            raise ValueError(f"{self.page}.md has {count} times: {words}")
        return changed


def phrases_of(page: str) -> tuple[Phrase, ...]:
    """Return the phrases of a page of the guide; none for most pages."""
    return tuple(phrase for phrase in _phrases() if phrase.page == page)


@functools.cache
def _phrases() -> tuple[Phrase, ...]:
    return (*_sizes(), *_flash_next(), *_results(), *_speeds(), *_speeds_of_others())


def _sizes() -> Iterator[Phrase]:
    page = "which-model"
    largest = [each for each in load_catalog().contents.repositories if each.model == "Qwen3.5-397B-A17B"]
    sizes = [file.n_bytes for each in largest for file in each.files if file.kind == "model" and file.n_bytes]
    smallest = f"{min(sizes) / GIB:.1f}"
    yield Phrase(
        page,
        "even the smallest file has {} GB",
        "Schon die kleinste Datei hat {} GB",
        (smallest,),
        "最小的文件也有 {} GB",
    )
    flash = "Qwen3.8-Flash-Next"
    yield Phrase(
        page,
        "(UD-IQ4_XS, a file of {} GB)",
        "(UD-IQ4_XS, eine Datei mit {} GB)",
        (_gb(flash, "UD-IQ4_XS"),),
        "（UD-IQ4_XS，文件 {} GB）",
    )
    yield Phrase(
        page, "(UD-Q4_K_XL, {} GB)", "(UD-Q4_K_XL, {} GB)", (_gb(flash, "UD-Q4_K_XL"),), "（UD-Q4_K_XL，{} GB）"
    )
    table = f"{lazy_table_bytes(catalog_facts(flash, 'UD-Q4_K_XL')) / GIB:.1f}"
    yield Phrase(page, "{} GB are a table", "{} GB dieser Dateien sind eine Tabelle", (table,), "有 {} GB 是一个表")


def _flash_next() -> Iterator[Phrase]:
    model = "Qwen3.8-Flash-Next"
    yield Phrase(
        "which-model",
        "{} tokens a second with an RTX 3090 and all experts in RAM, {} on a Strix Halo, where it fell to {} in a "
        "chat of 123,000 tokens, and {} on a DGX Spark",
        "{} Token pro Sekunde mit einer RTX 3090 und allen Experten im RAM, {} auf einem Strix Halo, wo es in einem "
        "Chat von 123.000 Token auf {} fiel, und {} auf einem DGX Spark",
        (
            *_reported(model, "RTX 3090"),
            *_reported(model, "Radeon 8060S", depth=2_048),
            *_reported(model, "Radeon 8060S", depth=123_000),
            *_reported(model, "NVIDIA GB10", depth=0),
        ),
        "一块 RTX 3090、所有专家在内存中时 {}，在 Strix Halo 上 {}，到 123,000 个 token 的对话中降到 {}，"
        "在 DGX Spark 上 {}",
    )
    yield Phrase(
        "which-model",
        "({} to {} on an RTX 3090), and slower where the GPU uses the RAM ({} on a Strix Halo)",
        "({} bis {} auf einer RTX 3090), und langsamer, wo die GPU den RAM benutzt ({} auf einem Strix Halo)",
        (*_reported("Qwen3.8-27B", "RTX 3090", quant="Q4"), *_reported("Qwen3.8-27B", "Radeon 8060S")),
        "（在 RTX 3090 上 {} 到 {}），GPU 使用内存时更慢（在 Strix Halo 上 {}）",
    )


def _results() -> Iterator[Phrase]:
    scores = {(each.name, each.model): f"{each.score:.1f}" for each in load_catalog().contents.benchmarks}
    models = ("Qwen3.5-35B-A3B", "Qwen3.5-9B", "Qwen3.5-27B", "Qwen3.8-27B")
    yield Phrase(
        "which-model",
        "Qwen publishes {} for the 35B, {} for the dense 9B and {} for the dense 27B of the same age (Qwen3.8-27B: {})",
        "nennt Qwen {} für das 35B, {} für das dichte 9B und {} für das gleich alte dichte 27B (Qwen3.8-27B: {})",
        tuple(scores["GPQA Diamond", model] for model in models),
        "Qwen 公布 35B 为 {}，稠密的 9B 为 {}，同期稠密的 27B 为 {}（Qwen3.8-27B：{}）",
    )
    yield Phrase(
        "which-model",
        "Qwen publishes an MMLU-Pro of {} for it",
        "Qwen nennt für MMLU-Pro {}, und",
        (scores["MMLU-Pro", "Qwen3.5-35B-A3B"],),
        "Qwen 公布它的 MMLU-Pro 为 {}",
    )
    perplexity = {
        (each.series.partition(":")[0], each.quant): f"{each.value:.3f}"
        for each in load_catalog().contents.quality
        if each.model == "Qwen3.5-35B-A3B" and each.measure == "perplexity"
    }
    quants = ("UD-Q4_K_XL", "Q4_K_M", "UD-Q4_K_L", "UD-IQ4_XS", "Q3_K_M", "UD-Q3_K_XL", "Q3_K_S")
    words = ", ".join(f"{quant} {{}}" for quant in quants)
    numbers = tuple(perplexity["Series B", quant] for quant in quants)
    yield Phrase("which-model", words, words, numbers, words.replace(", ", "，"))


def _speeds() -> Iterator[Phrase]:
    page, small = "which-model", "Qwen3.5-35B-A3B"
    yield Phrase(
        page,
        "users report {} tokens a second with Qwen3.5-27B in Q4_K_M and {} with Qwen3.5-35B-A3B in UD-Q3_K_XL",
        "berichten Nutzer {} Token pro Sekunde mit Qwen3.5-27B in Q4_K_M und {} mit Qwen3.5-35B-A3B in UD-Q3_K_XL",
        (
            *_reported("Qwen3.5-27B", "RTX 3090", depth=122_880, quant="Q4_K_M"),
            *_reported(small, "RTX 3090", depth=122_880, quant="UD-Q3_K_XL"),
        ),
        "Qwen3.5-27B 的 Q4_K_M 每秒 {} 个 token，Qwen3.5-35B-A3B 的 UD-Q3_K_XL 每秒 {} 个",
    )
    yield Phrase(
        page,
        "with {} tokens a second after 4,096 tokens and {} after 131,072",
        "wurden {} Token pro Sekunde nach 4.096 Token berichtet und {} nach 131.072",
        (*_reported(small, "RTX 3090", depth=4_096), *_reported(small, "RTX 3090", depth=131_072)),
        "在 4,096 个 token 之后每秒 {} 个 token，在 131,072 个之后 {} 个",
    )
    yield Phrase(
        page,
        "{} to {} tokens a second were reported for short answers",
        "{} bis {} Token pro Sekunde für kurze Antworten berichtet",
        _reported(small, "RTX 5090", depth=0),
        "短回答有每秒 {} 到 {} 个 token 的报告",
    )
    yield Phrase(
        page,
        "others report {} to {} tokens a second with 35B-A3B on a PC with DDR5, and {} on a Ryzen 9 7950X",
        "Nutzer berichten mit 35B-A3B {} bis {} Token pro Sekunde auf einem PC mit DDR5 und {} auf einem Ryzen 9 7950X",
        (*_reported(small, quant="Q4"), *_reported(small, quant="Q4_K_M")),
        "在有 DDR5 的电脑上用 35B-A3B 每秒 {} 到 {} 个 token，在 Ryzen 9 7950X 和 DDR5-6000 上 {} 个",
    )
    catalog = load_catalog()
    rows = [compare(report, catalog) for report in catalog.contents.speeds]
    close, far = sum(row.factor <= CLOSE for row in rows), sum(row.factor > FAR for row in rows)
    yield Phrase(
        page,
        "Of {} user reports, {} are within a factor of {} of the estimate, and {} are off by more than {}.",
        "Von {} Berichten liegen {} höchstens um einen Faktor von {} neben der Schätzung, und {} um mehr als {}.",
        tuple(map(str, (len(rows), close, CLOSE, far, FAR))),
        "在 {} 份用户报告中，{} 份与估算相差不超过 {} 倍，{} 份相差超过 {} 倍",
    )


def _speeds_of_others() -> Iterator[Phrase]:
    small, dense = "Qwen3.5-35B-A3B", "Qwen3.8-27B"
    yield Phrase(
        "amd-intel",
        "{} and {} tokens a second with the 35B on a Radeon AI PRO R9700, {} with Qwen3.8-27B on an RX 7900 XTX, {} "
        "on an RX 9060 XT with 16 GB, and {} with the 35B in Q6_K",
        "{} und {} Token pro Sekunde mit dem 35B auf einer Radeon AI PRO R9700, {} mit Qwen3.8-27B auf einer RX 7900 "
        "XTX, {} auf einer RX 9060 XT mit 16 GB, und {} mit dem 35B in Q6_K",
        (
            *_reported(small, "Radeon AI PRO R9700"),
            *_reported("Qwen3.6-35B-A3B", "Radeon AI PRO R9700"),
            *_reported(dense, "RX 7900 XTX"),
            *_reported(dense, "RX 9060 XT 16GB"),
            *_reported("Qwen3.6-35B-A3B", "Arc Pro B70"),
        ),
    )
    large, strix = "Qwen3.5-122B-A10B", "Radeon 8060S"
    yield Phrase(
        "amd-intel",
        "{} tokens a second with the 35B in Q8_0, {} with the 122B in Q4_K_M ({} GB), {} with the 27B",
        "{} Token pro Sekunde mit dem 35B in Q8_0, {} mit dem 122B in Q4_K_M ({} GB), {} mit dem 27B",
        (
            *_reported(small, strix, quant="Q8_0"),
            *_reported(large, strix, quant="Q4_K_M"),
            _gb(large, "Q4_K_M"),
            *_reported("Qwen3.5-27B", strix),
        ),
    )
    yield Phrase(
        "macs",
        "{} to {} tokens a second with the 35B on an M4 Max, about {} on an M4 Pro",
        "{} bis {} Token pro Sekunde mit dem 35B auf einem M4 Max, etwa {} auf einem M4 Pro",
        (*_reported(small, "Apple M4 Max"), *_reported(small, "Apple M4 Pro")),
    )
    yield Phrase(
        "macs",
        "with Qwen3.8-27B {} on an M3 Ultra and {} on an M4",
        "mit Qwen3.8-27B {} auf einem M3 Ultra und {} auf einem M4",
        (*_reported(dense, "Apple M3 Ultra"), *_reported(dense, "Apple M4")),
    )
    yield Phrase(
        "several-cards",
        "a user measured {} tokens a second on an RTX 5070 Ti and an RTX 5060 Ti together",
        "hat jemand {} Token pro Sekunde auf einer RTX 5070 Ti und einer RTX 5060 Ti zusammen gemessen",
        _reported(small, "RTX 5070 Ti", "RTX 5060 Ti 16GB"),
    )
    yield Phrase(
        "several-cards",
        "ran Qwen3.8-27B at {} tokens a second",
        "bei Qwen3.8-27B auf {} Token pro Sekunde",
        _reported(dense, "RTX 5060 Ti 16GB", "RTX 5060 Ti 16GB"),
    )


def _gb(model: str, quant: str) -> str:
    return f"{catalog_facts(model, quant).file_bytes / GIB:.1f}"


def _reported(model: str, *gpus: str, depth: int | None = None, quant: str = "") -> tuple[str, ...]:
    """Return the reported speed, or the lowest and the highest of several reports or of a range. No GPU: the CPU."""
    rates = [
        math.floor(rate + 0.5)
        for report in load_catalog().contents.speeds
        if (report.model, report.gpus) == (model, gpus)
        and depth in (None, report.depth)
        and quant in ("", report.quant)
        for rate in report.range
    ]
    if not rates:
        raise ValueError(f"no report of {model} {quant} on {gpus} at {depth}")
    return tuple(map(str, sorted({min(rates), max(rates)})))
