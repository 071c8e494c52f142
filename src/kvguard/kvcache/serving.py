"""A deployment with every flag settled: what the arithmetic works with."""

from kvguard.kvcache import releases
from kvguard.kvcache.releases import Release
from kvguard.slotted import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """Every flag with a value: what the arithmetic works with."""

    release: Release
    engine: str
    max_model_len: int
    dtype: str
    block_size: int
    kv_cache_dtype: str
    tp: int
    pp: int
    pp_layer_partition: tuple[int, ...] | None
    dcp: int
    pcp: int
    dp: int
    max_num_batched_tokens: int
    encoder_budget: int
    max_num_seqs: int
    async_scheduling: bool
    new_runner: bool
    prefix_caching: bool
    hybrid_manager: bool
    mamba_cache_mode: str
    mamba_block_size: int | None
    mamba_cache_dtype: str
    mamba_ssm_cache_dtype: str
    kernel_block_alignment: int | None
    speculative_tokens: int

    @property
    def in_flight_tokens(self) -> int:
        """F: tokens scheduled and not yet settled, which sliding layers must keep besides their window."""
        if self.release < releases.IN_FLIGHT_TOKENS:
            return self.max_num_batched_tokens
        return self.max_num_batched_tokens * self._concurrent_batches

    @property
    def _concurrent_batches(self) -> int:
        """config/vllm.py max_concurrent_batches."""
        if not self.async_scheduling:
            return self.pp
        return self.pp + 1 if self.new_runner else (2 if self.pp == 1 else self.pp)

    @property
    def length_shards(self) -> int:
        """By how many ranks a request's tokens are divided: DCP, and PCP in the releases where it divided too."""
        divides = releases.PCP_EXISTS <= self.release < releases.PCP_GONE
        return self.dcp * (self.pcp if divides else 1)
