"""The stores: mechanism only. `base` says what a store must do; each other module does it."""
