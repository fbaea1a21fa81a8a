"""Scan plans as DataFrames, one module a lane."""
