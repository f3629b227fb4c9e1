"""Mutation testing of the assignors and the cooperative step: `make mutants`."""
