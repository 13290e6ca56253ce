"""The gold tables of a lake as a page with charts and as text. Reads Delta files; starts no Spark."""
