"""Features about the log: its times, checkpoints, domains, and who may write or clear it.

One module an entry of the specification. Must not live here: reading and writing of the log (`delta.log`).
"""
