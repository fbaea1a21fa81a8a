"""The lane without Spark: pyarrow interprets the same scan plans."""
