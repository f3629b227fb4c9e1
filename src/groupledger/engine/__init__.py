"""Spark's side: the session, the jars it needs, and the bridge between Arrow and `core`."""
