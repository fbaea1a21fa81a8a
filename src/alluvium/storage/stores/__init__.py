"""One module a kind of store, each behind the port `Store`, and what only one of them needs.

Must not live here: anything that other rooms import: they open stores by `storage.open`.
"""
