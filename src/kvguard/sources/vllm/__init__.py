"""What a running vLLM says of itself: the second witness beside its log, and the only one when the log is gone."""
