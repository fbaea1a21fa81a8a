"""Values on their way into a table: assigned, converted, computed, checked, by the rules that all verbs share.

Must not live here: which rows get them (`commands`), and writing of files (`spark.write`).
"""
