"""The waist: frozen data that crosses between formats and engines, and the ports between them.

Formats make plans, engines interpret them. Must not live here: behaviour, pyspark, the word of any format.
"""
