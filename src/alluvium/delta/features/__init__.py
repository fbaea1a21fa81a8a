"""One module a protocol feature; registry.py holds them in order."""
