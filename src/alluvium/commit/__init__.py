"""The one optimistic-concurrency loop and its retry policy.

Must not live here: the word of any format: a port of five verbs says what is assembled, published and compared.
"""
