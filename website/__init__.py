"""The documentation as a site: the pages that are written from the code, and what MkDocs needs besides."""
