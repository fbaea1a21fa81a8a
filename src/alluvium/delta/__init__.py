"""The Delta transaction log protocol, pure: no pyspark, no rows. Twins of paimon/ carry the same file names."""
