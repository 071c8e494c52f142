"""The pools of a start's engines as a workload meets them: by the model's config where one explains the log."""

from typing import TYPE_CHECKING

from kvguard.errors import ConfigError
from kvguard.slo.fit import Fit, Request
from kvguard.slo.fit_by_log import fit_by_log
from kvguard.slo.objectives import Workload
from kvguard.slotted import dataclass
from kvguard.startup.report import Capacity, Start

if TYPE_CHECKING:
    from kvguard.slo.fit_by_model import Explained


@dataclass(frozen=True, slots=True)
class Pools:
    """The engines of one start, each with the layouts that explain its figures; none where the log alone counts."""

    start: Start
    workload: Workload
    engines: tuple[Capacity, ...]
    explained: tuple[tuple["Explained", ...], ...]
    trouble: str | None = None
    """Why the model's config was not used; one line."""

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
        return unexplained
    # the arithmetic is loaded only where a model's config asks for it
    from kvguard.slo.fit_by_model import explain

    try:
        explained = tuple(explain(start, engine, workload.model_config) for engine in engines)
    except ConfigError as error:
        name = workload.model_config_name or "the model's config"
        return Pools(start, workload, engines, unexplained.explained, f"{name} is not used: {error}")
    return Pools(start, workload, engines, explained)
