"""Recordings, replay and lockstep: the proof that the engine is exact."""
