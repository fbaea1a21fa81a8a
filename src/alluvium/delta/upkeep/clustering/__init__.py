"""Clustered tables put in order: which files make a Z-cube, what the log says of it, along which curve rows lie.

Must not live here: by which columns a table is clustered (`delta.features.rows.clustering`,
`delta.description.cluster`), and whatever reads rows.
"""
