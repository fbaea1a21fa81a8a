"""The Delta transaction log protocol, pure: floors from `terms` up to `upkeep`, each a room.

Twins of `paimon/` carry the same names and do the same job. Must not live here: pyspark, rows, and loose modules: each
belongs on a floor (docs/architecture.md).
"""
