"""Reading a store from Spark: its tables as batches, its event log as a stream."""
