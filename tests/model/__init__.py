"""The model: random sequences of all verbs on one table by random engines, compared with a dict of rows after each step.

`values`, `state`: what a table is, as plain Python. `verbs/`: what a step does to it. `engines/`: who does it to the real table. `observe`:
what the real table must then say. `script`, `player`: a sequence is a seed; the failing one is shrunk. `sabotage`: defects that must be
caught. `delta_game`: how Delta tables are played with; `paimon/` has all of that for Paimon's.
Modules that run in other engines' environments (`engines/spark_engine`, `engines/deltalake_engine`, `engines/worker`) and what they
import know nothing of the project. docs/decisions/0026 tells why it is built so.
"""
