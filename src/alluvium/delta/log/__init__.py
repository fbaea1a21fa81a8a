"""The log of a table: its commits, checkpoints and checksums, listed, read, reconciled, written.

Must not live here: what a version means to readers (`delta.view`), and who writes which of these files when.
"""
