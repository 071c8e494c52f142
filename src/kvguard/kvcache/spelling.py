"""How a change is written: each flag with its value, as it is typed; two that go together are joined by a plus."""

AND = " + "


def spelt(flag: str, value: str) -> str:
    """ "--kv-cache-dtype fp8 + --quantization awq"; what is no flag stands behind its value: "at most 8 tokens …"."""
    flags, values = flag.split(AND), value.split(AND)
    if len(flags) != len(values):
        return _one(flag, value)
    return AND.join(_one(*pair) for pair in zip(flags, values, strict=True))


def _one(flag: str, value: str) -> str:
    return f"{flag} {value}".strip() if flag.startswith("-") else f"{value} {flag}".strip()
