"""The KV-cache arithmetic: from a model's config.json and the serving flags to blocks, tokens and requests.

Knows nothing of logs and opens nothing. `plan.py` joins the steps; each step is one module:
`readers/` (config.json → layers) → `pages.py` (bytes) → `block_sizes.py` → `groups.py` → `pool.py` and `fit.py`
(what vLLM prints and refuses) → `workload.py` (what a load really holds) → `levers.py` (what to change).
"""
