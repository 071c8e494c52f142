"""Baselines: what is kept of a start, what of two starts can be compared, and what explains their difference.

Imports point one way: `baseline` and `document` know nothing of comparing; `pair` puts two side by side; `likeness`
says which figure means the same in both, `budget` where the memory went, `causes` why, `difference` joins them.
"""
