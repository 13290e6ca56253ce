"""What helps to test Headrace and what is built on it. `conformance` is the kit for stores."""
