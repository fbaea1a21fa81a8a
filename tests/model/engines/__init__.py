"""Who carries calls out: an engine takes a call (plain JSON) and a table's path. No expectation belongs here."""
