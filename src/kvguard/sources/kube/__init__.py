"""A pod's log as a source: read through the Kubernetes API, over restarts, rotations and absences of the API server."""
