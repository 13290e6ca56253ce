"""How each store's rows become Arrow batches."""
