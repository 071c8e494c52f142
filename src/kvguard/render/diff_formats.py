"""The formats of a difference by name: `kvguard diff --format NAME`."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from kvguard.render.diff_json import render_diff_json
from kvguard.render.diff_markdown import render_diff_markdown
from kvguard.render.diff_text import render_diff
from kvguard.render.layout import Terminal
from kvguard.slo.baselines.difference import Difference

DIFF_RENDERERS: Mapping[str, Callable[[Difference, Terminal], str]] = MappingProxyType(
    {"text": render_diff, "json": render_diff_json, "markdown": render_diff_markdown}
)
"""Every format of a difference."""
