"""The sink: rows of a DataFrame become jobs, each of them once."""
