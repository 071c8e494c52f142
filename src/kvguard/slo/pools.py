"""The pools of a start's engines as a workload meets them: by the model's config where one explains the log."""

from typing import TYPE_CHECKING

from kvguard.errors import ConfigError
from kvguard.kvcache.load import Request
from kvguard.slo.fit import Fit
from kvguard.slo.fit_by_log import fit_by_log, refutes_uniform
from kvguard.slo.objectives import Workload
from kvguard.slotted import dataclass, replace
from kvguard.startup.report import Capacity, Start, StartWarning

if TYPE_CHECKING:
    from kvguard.slo.fit_by_model import Explained


@dataclass(frozen=True, slots=True)
class Pools:
    """The engines of one start, each with the layouts that explain its figures; none where the log alone counts."""

    start: Start
    workload: Workload
    engines: tuple[Capacity, ...]
    explained: tuple[tuple["Explained", ...], ...]
    trouble: StartWarning | None = None
    """That the model's config, or what is declared of its layers, was not used."""

    def fit(self, engine: Capacity, request: Request) -> Fit | None:
        """Requests of that length on that engine; `None` where the log tells too little."""
        explained = self.explained[self.engines.index(engine)]
        if explained:
            from kvguard.slo.fit_by_model import fit_by_model

            return fit_by_model(explained, request)
        return fit_by_log(self.start, engine, request, self.workload.uniform_layers)


def pools_of(start: Start, workload: Workload) -> Pools:
    """The pools of that start; a model config that does not explain the log is set aside, and that is told."""
    engines = start.engines or (start.capacity.weakest,)
    unexplained = Pools(start, workload, engines, ((),) * len(engines))
    if workload.model_config is None:
        return replace(unexplained, trouble=_refuted(unexplained))
    # the arithmetic is loaded only where a model's config asks for it
    from kvguard.slo.fit_by_model import explain

    try:
        explained = tuple(explain(start, engine, workload.model_config) for engine in engines)
    except ConfigError as error:
        name = workload.model_config_name or "the model's config"
        return replace(unexplained, trouble=StartWarning("model-config-not-used", f"{name} is not used: {error}"))
    return Pools(start, workload, engines, explained)


def _refuted(pools: Pools) -> StartWarning | None:
    """That the log refutes what is declared of the model's layers; `None` where it does not."""
    if not pools.workload.uniform_layers:
        return None
    found = (refutes_uniform(pools.start, engine) for engine in pools.engines)
    why = next((why for why in found if why is not None), None)
    if why is None:
        return None
    place = pools.start.lines.get("layers") or pools.start.lines.get("kv_cache_tokens")
    return StartWarning("layers-not-uniform", f"workload.layers: uniform is not used: {why}", place)
