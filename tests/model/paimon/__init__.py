"""The model of Paimon tables: append tables and tables of keys, beside the same player as Delta's.

`verbs`: what a step does to a table, `world`: what is known of it, `observe`: what it must then say, `changelog`: what it must tell of the
step; `python_engine`, `pypaimon_engine`: who does it. Values, rows, sequences, shrinking and counts are those of the folder above. No Delta belongs here.
"""
