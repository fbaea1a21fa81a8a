"""Verbs: from a state of the model and a seed to a call and the state afterwards. No engine belongs here."""
