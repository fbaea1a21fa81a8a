"""Scan plans as DataFrames: what all lanes share, and the lane of Spark's Python workers (`source`).

Must not live here: what one lane alone needs: `native_lane`, `connect_lane`.
"""
