-- The functions changed after version 7, and are installed by migrations alone.

-- What a worker says of itself: how many handlers it runs at once, and how many it ran then. NULL: it did
-- not say.
ALTER TABLE headrace.workers ADD COLUMN slots integer;
ALTER TABLE headrace.workers ADD COLUMN busy integer;
