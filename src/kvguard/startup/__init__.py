"""Events to a capacity report: phases, engines and ranks, restarts, failures, warnings."""
