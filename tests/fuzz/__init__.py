"""Broken records by the hundred thousand: none does harm beyond its own group, and arrival does not matter."""
