"""Streams of Spark whose source or sink is in Python: proxies that Structured Streaming calls, and how queries start.

Must not live here: a word of any format, offsets as anything but text, writes (`commands`).
"""
