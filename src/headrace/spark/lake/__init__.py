"""The lake: a store's event log as Delta tables, in three layers, that anything can read.

Bronze keeps events as they came, silver what they say of jobs and attempts, gold what they say per hour.
"""
