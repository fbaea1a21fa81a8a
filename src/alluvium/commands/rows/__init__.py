"""Changed rows, whatever verb changed them: described once, and applied by masks or by files written anew.

Must not live here: which rows a verb changes, and why.
"""
