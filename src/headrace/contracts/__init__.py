"""The five specifications, each callable by its own names: one thin adapter per module.

An adapter translates names, states, argument order, return values and errors. It decides nothing: what
happens is the manager's business, under the specification's policy preset.
"""
