-- What a worker says of itself: how many handlers it runs at once, and how many it ran then. NULL: it did
-- not say.
ALTER TABLE workers ADD COLUMN slots INTEGER;
ALTER TABLE workers ADD COLUMN busy INTEGER;
