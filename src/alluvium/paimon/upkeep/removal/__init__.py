"""What may go: snapshots, changelogs and files that nothing of a table needs any more.

Whatever is deleted here was shown to be in no snapshot, tag, branch or changelog first. Must not live here: how tags
and branches are made (`paimon.upkeep.life`).
"""
