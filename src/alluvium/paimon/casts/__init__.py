"""Values of old data files as the columns' types of today. Specification: `org.apache.paimon.casting`.

Must not live here: which column of a file is which of the table (`paimon.files.evolution`).
"""
