"""What all pipelines share: running, progress, Spark sessions, positions."""
