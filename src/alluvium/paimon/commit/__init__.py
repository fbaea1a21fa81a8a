"""From a draft to a commit: what it wants, what it becomes on a base, and which winners it cannot live with.

Must not live here: the loop and its retries (`alluvium.commit`), and which rows or files a verb changes.
"""
