"""Runs in the readers' environment: deltalake deletes rows, and then writes a checkpoint.

delete_openly.py TABLE CONDITION
"""

import os
import sys

from deltalake import DeltaTable

if __name__ == "__main__":
    table = DeltaTable(sys.argv[1])
    table.delete(sys.argv[2])
    table.create_checkpoint()
    # As in read_openly.py. What was printed would be lost.
    sys.stdout.flush()
    os._exit(0)
