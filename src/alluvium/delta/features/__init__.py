"""What a table may switch on: one module an entry of the specification, in rooms by what it is about.

`registry` holds them in the order of the passes, `feature` says what a record is. Must not live here: reading and
writing of the log or of rows: features edit plans and look at actions.
"""
