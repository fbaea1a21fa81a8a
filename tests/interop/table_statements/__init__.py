"""Statements that make, rename and drop tables, and how two engines carry them out."""
