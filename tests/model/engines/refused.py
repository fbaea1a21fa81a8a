"""What an engine says that does not do something, for a reason that is known."""


class Refused(Exception):
    """The table must be as it was."""
