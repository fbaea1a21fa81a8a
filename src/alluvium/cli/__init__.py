"""The command line: parses flags, prints."""
