"""The catalogue of what vLLM prints, release by release, against the table: every line, every figure, every range."""

from typing import Any

import pytest

from kvguard.lines.formats import FORMATS
from kvguard.lines.samples import hits
from kvguard.units import GIB
from tests.lines.corpus import catalogue, lines_of
from tests.lines.test_formats_corpus import SAMPLES, numbers

ENTRIES = [entry for entry in catalogue() if entry["signal"] != "prefix"]
FIELDS: dict[str, tuple[str, ...]] = {
    "activation_gib": ("activation_peak_bytes",),
    "available_gib": ("available_bytes",),
    "block_size": ("block_size_tokens", "block_size"),
    "blocks": ("gpu_blocks",),
    "concurrency": ("max_concurrency",),
    "consumed_gib": ("consumed_bytes",),
    "cp": ("factor",),
    "cuda_graph_estimate_gib": ("cuda_graphs_estimated_bytes",),
    "cuda_graph_gib": ("cuda_graphs_bytes",),
    "dcp": ("factor",),
    "engine": ("engine", "generation"),
    "estimated_max_model_len": ("estimated_tokens",),
    "free_gib": ("free_bytes",),
    "gpu_blocks": ("gpu_blocks", "total_gpu_blocks"),
    "gpu_kv_usage_pct": ("kv_cache_usage",),
    "kv_cache_dtype": ("kv_cache_dtype", "value"),
    "kv_cache_gib": ("kv_cache_bytes",),
    "max_model_len": ("max_model_len_tokens", "requested_tokens", "max_seq_len", "max_model_len", "value"),
    "max_model_len_before": ("requested_tokens",),
    "max_num_batched_tokens": ("value",),
    "model": ("model", "value"),
    "needed_gib": ("needed_bytes",),
    "non_torch_gib": ("non_torch_bytes",),
    "override": ("gpu_blocks",),
    "pending": ("waiting",),
    "profiled": ("profiled_blocks",),
    "rank": ("rank_number",),
    "requested_gib": ("usable_bytes", "needed_bytes"),
    "seconds": ("load_seconds", "init_seconds", "capture_seconds"),
    "tokens": ("kv_cache_tokens",),
    "total_bytes": ("total_gpu_bytes",),
    "total_gib": ("total_gpu_bytes",),
    "used_gib_per_device": ("weights_bytes",),
    "version": ("vllm_version",),
    "weights_gib": ("weights_bytes",),
}
"""Where a figure of the catalogue stands in an event; the others stand under their own name."""
NOT_TOLD = {
    # an event's figures are those that the report has a place for; these are known and left out
    "cap_gib", "current_free_bytes", "current_free_gib", "device", "group_block_sizes", "initial_free_bytes",
    "initial_free_gib", "max_num_seqs", "needed_blocks", "pcp", "peak_gib", "platform", "prefix_hit_pct",
    "reserved_gib", "scheduler_block_size", "used_gib",
}  # fmt: skip
NOT_TOLD_BY = {
    "fail-external-weights": {"requested_gib"},
    "fail-rbln": {"blocks"},
    "fail-spyre-pages": {"blocks"},
    "tokens-multiply-cp": {"dcp"},  # the factor is the product
    "weights-online-quant-seconds": {"seconds"},  # a decoy
    "cfg-engine-banner-noversion": {"quantization"},  # "None" is left out
}
SCALES = {"gib": GIB, "pct": 0.01}


def told_by(entry: dict[str, Any]) -> dict[str, list[Any]]:
    """Every value that the example's lines tell, by field; a rounded figure by its value alone."""
    told: dict[str, list[Any]] = {}
    for line in lines_of(entry):
        for hit in hits(line, FORMATS):
            for event in hit.told:
                for name, value in {**event, **event.get("config", {}), **event.get("arguments", {})}.items():
                    rounded = isinstance(value, list) and len(value) == 2 and isinstance(value[1], float)
                    told.setdefault(name, []).append(value[0] if rounded else value)
    return told


def test_each_entry_is_told_by_a_row_and_stands_in_its_sample_file():
    for entry in ENTRIES:
        rows = [hit.row.name for line in lines_of(entry) for hit in hits(line, FORMATS)]
        filed = {sample.line for sample in SAMPLES if sample.row in rows}

        assert rows or entry["id"] == "life-progress-bars", entry["id"]  # noise: no row may tell of it
        assert all(line in filed for line in lines_of(entry) if hits(line, FORMATS)), entry["id"]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["id"])
def test_each_figure_of_an_entry_arrives_in_its_unit(entry):
    told = told_by(entry)
    for key, captured in entry.get("captures", {}).items():
        if key in NOT_TOLD | NOT_TOLD_BY.get(entry["id"], set()):
            continue
        fields = FIELDS.get(key, (key,))
        found = [value for field in fields for value in told.get(field, [])]
        several = isinstance(captured, list) and key != "served_model_name"  # one value for each line
        for value in captured if several else [captured]:
            assert any(same(key, value, other) for other in found), (entry["id"], key, value, told)


def same(key: str, captured: Any, told: Any) -> bool:
    """Whether a figure of the catalogue is the one that was told; its GiB have two decimals."""
    scale = next((scale for unit, scale in SCALES.items() if f"_{unit}" in key), None)
    if scale is None:
        return bool(captured == told)
    return told == round(captured * scale, 6) or abs(told - captured * scale) <= 0.005 * scale


def test_the_releases_of_an_entry_are_among_its_rows():
    for entry in ENTRIES:
        first, last = (numbers(version) for version in entry["versions"])
        found = [
            (hit.row.name, numbers(from_), numbers(to or from_))
            for line in lines_of(entry)
            for hit in hits(line, FORMATS)
            for versions in hit.row.versions
            for from_, _, to in [versions.rpartition(" ")[2].partition("-")]
        ]

        assert not found or any(from_ <= first and last <= to for _, from_, to in found), (entry["id"], found)
        assert {row for row, *_ in found} == {row for row, from_, to in found if from_ <= last and first <= to}
