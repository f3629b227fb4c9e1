"""Measurements, never tests: ratios against a floor or a peer, taken in one run, that say what they leave out."""
