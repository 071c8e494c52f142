"""The sidecar: follows a log, holds the verdict, answers probes, Prometheus and people."""
