"""The HTTP API as data: its routes, and what is asked and answered. Server and client share it."""
