"""A report as a folder of HTML pages: an index, and a page for each of the worst groups.

Each page stands on its own: it holds its pictures and its style, runs no script and asks no network.
"""
