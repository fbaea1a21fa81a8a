"""Bytes in objects: open a URL, get, put if absent, list, delete.

The only room that knows obstore or Hadoop file systems. Must not live here: what the bytes mean.
"""
