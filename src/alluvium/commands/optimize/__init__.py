"""OPTIMIZE and REORG: the rows of small or spoilt files in other files, compact or in a better order.

Must not live here: which files are written anew together (`delta.upkeep.optimize`), and places on a curve
(`delta.upkeep.z_values`): both are pure.
"""
