"""Values of old data files as the columns' types of today. Specification: `org.apache.paimon.casting`."""
