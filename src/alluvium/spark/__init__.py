"""The only interpreter of plans on Spark.

At the root: writing. Must not live here: the word of any format, and verbs: `commands` joins plans to engines.
"""
