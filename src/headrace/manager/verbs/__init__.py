"""The verbs of the manager, by what they are for. Thin: the rules stand in the modules around."""
