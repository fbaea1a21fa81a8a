"""What a table may switch on: one module a capability, where it asks for more than an option.

Must not live here: options (`paimon.terms`), and plans of what is read (`paimon.view`).
"""
