"""The door to Delta tables: DeltaTable, the view without Spark, and the upkeep that asks for Delta's rules.

Must not live here: what is the same for both formats (it stands below, in `api`), and protocol (`alluvium.delta`).
"""
