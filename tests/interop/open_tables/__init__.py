"""Tables as we write them, one for each feature of a writer, for other readers to read; with Spark and without."""
