"""Where bytes come from: a file that rotates, stdin, a pod's log, a child process; and vLLM's own endpoints."""
