"""Solve one group given as a JSON scenario.

Read `form` (what is accepted), then `solving` (by Java's, a coordinator's, another library's or a custom assignor).
Called by `groupledger solve`, `groupledger.solve` and the what-ifs.
"""
