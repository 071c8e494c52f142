"""Which engine a release starts: V1 by default from 0.8.0, but V0 where that V1 lacks what is asked for.

After `_is_v1_supported_oracle` of engine/arg_utils.py and the classes marked SupportsV0Only, release by release.
"""

from collections.abc import Mapping

from kvguard.errors import ConfigError
from kvguard.kvcache import releases
from kvguard.kvcache.layers import ModelLayers
from kvguard.kvcache.releases import Release
from kvguard.slotted import dataclass


@dataclass(frozen=True, slots=True)
class Lack:
    """Something that V1 could do from `possible` on (VLLM_USE_V1=1), and does by itself from `default` on."""

    what: str
    possible: Release
    default: Release


_RECURRENT = Lack("recurrent layers", Release(0, 9, 2), Release(0, 10, 2))
_STAGES = Lack("pipeline stages", releases.V1_EXISTS, Release(0, 9, 1))
_DRAFTS = Lack("speculative decoding", Release(0, 8, 3), Release(0, 9, 0))
_FP8 = Lack("an FP8 KV cache", Release(0, 8, 2), Release(0, 8, 2))

_V0_ONLY_BEFORE: Mapping[str, Release] = {
    "BloomForCausalLM": Release(0, 10, 2),
    "FalconMambaForCausalLM": Release(0, 10, 1),
    "GlmForCausalLM": Release(0, 8, 5),
    "GritLM": Release(0, 10, 2),
    "JambaForCausalLM": Release(0, 10, 1),
    "JambaForSequenceClassification": Release(0, 10, 1),
    "MambaForCausalLM": Release(0, 10, 1),
    "MiniCPMV": Release(0, 8, 3),
    "MiniMaxForCausalLM": Release(0, 10, 1),
    "MiniMaxM1ForCausalLM": Release(0, 10, 1),
    "MiniMaxText01ForCausalLM": Release(0, 10, 1),
    "Phi4MMForCausalLM": Release(0, 8, 5),
    "Plamo2ForCausalLM": Release(0, 10, 2),
}
"""The release from which V1 has a class that was marked V0 only."""


@dataclass(frozen=True, slots=True)
class Wants:
    """What of the flags the first releases of V1 could not do."""

    stages: int
    drafts: bool
    fp8: bool


def engine_of(asked: str | None, release: Release, model: ModelLayers, wants: Wants) -> tuple[str, str | None]:
    """The engine, and why, where it is another than the release's default or hangs on the card.

    Raises:
        ConfigError: V1 is asked for what this release runs with V0 only.
    """
    lacks = _lacks(model, wants)
    if asked == "v1":
        missing = next((lack for lack in lacks if release < lack.possible), None)
        if missing is not None:
            raise ConfigError(
                f"--engine v1: vLLM {release} runs {missing.what} with V0 only; V1 has it from {missing.possible} on"
            )
    if asked is not None or release < releases.V1_BY_DEFAULT:
        return asked or "v0", None
    fallback = next((lack for lack in lacks if release < lack.default), None)
    if fallback is not None:
        return "v0", f"{fallback.what}: with V1 by default from {fallback.default} on"
    if wants.fp8 and release < releases.V0_GONE:
        return "v1", "an FP8 KV cache on Hopper; cards without FP8 attention in V1 fall back to V0"
    return "v1", None


def _lacks(model: ModelLayers, wants: Wants) -> list[Lack]:
    since = _V0_ONLY_BEFORE.get(model.architecture)
    named = () if since is None else (Lack(model.architecture, since, since),)
    asked = ((_RECURRENT, model.keeps_states), (_STAGES, wants.stages > 1), (_DRAFTS, wants.drafts), (_FP8, wants.fp8))
    return [*named, *(lack for lack, wanted in asked if wanted)]
