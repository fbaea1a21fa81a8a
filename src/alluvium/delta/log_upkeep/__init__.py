"""What keeps a log short: checkpoints, compactions, and the removal of what they replace.

Must not live here: formats of these files (`delta.log`), and upkeep that is a commit (`delta.upkeep`).
"""
