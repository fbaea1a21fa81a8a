"""The lane without Spark: pyarrow interprets the same scan plans.

Must not live here: pyspark, the word of any format, and where rows come from: plans say it.
"""
