"""OPTIMIZE as DeltaTable has it: the builder, the session's settings that it obeys, and the frame that it answers.

Must not live here: the verb (`commands.optimize`).
"""
