"""What is wrong with a table: its log, the files that stand for others, its data files, vectors and statistics.

Must not live here: what mends it (`upkeep/repair`), and anything that writes.
"""
