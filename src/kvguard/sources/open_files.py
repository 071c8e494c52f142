"""How many files this process may have open at once."""

import resource


def may_open(needed: int) -> int:
    """Let it open that many, as far as the hard limit does; as many of them as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed
