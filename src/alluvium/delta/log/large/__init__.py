"""Logs whose checkpoint is more than memory should hold: their file actions piece by piece, and their checkpoints.

Must not live here: who asks for what (`alluvium.delta.view`, `alluvium.delta.log_upkeep`).
"""
