"""One request of a load: the tokens that it is, stores and shares."""

from kvguard.slotted import dataclass


@dataclass(frozen=True, slots=True)
class Request:
    """One request at its longest, in tokens; the shared prefix is part of the prompt."""

    prompt_tokens: int
    output_tokens: int
    shared_prefix_tokens: int = 0

    @property
    def request_tokens(self) -> int:
        """Prompt and output together."""
        return self.prompt_tokens + self.output_tokens

    @property
    def stored_tokens(self) -> int:
        """Tokens in the cache while the last one is computed, which is never stored unless it is the only one."""
        return self.request_tokens - 1 if self.request_tokens > 1 else self.request_tokens

    @property
    def shareable_tokens(self) -> int:
        """Tokens of the prefix that can be found in the cache: a prompt's last token is computed anew."""
        return max(0, min(self.shared_prefix_tokens, self.prompt_tokens - 1))
