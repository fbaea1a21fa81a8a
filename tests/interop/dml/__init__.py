"""Scripts of row changes that run in any engine with DeltaTable; nothing of the project is imported here."""
