"""What users import: the front doors, and what Delta's and Paimon's have in common.

At the root: options, registry of doors (`doors`), `open`, `read`, `write`, `explain`. Must not live here: protocol, and
work on rows (`commands`). Nothing but `alluvium`, `alluvium.errors` and `alluvium.paimon` is public.
"""
