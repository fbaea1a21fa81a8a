"""The log as files: names, listing, reading, reconciliation, checkpoints."""
