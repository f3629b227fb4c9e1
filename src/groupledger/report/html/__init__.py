"""Write a report as a folder of HTML pages: an index, and a page for each of the worst groups.

Each page stands on its own: it holds its pictures and its style, runs no script and asks no network. Read `written`
(the folder), `gathering` (what is on it), `index_page` and `group_page`, `page_parts`, then the pictures: `charts`.
Called by `cli.report` and `cli.simulate`.
"""
