-- Everything up to and with this event.
DELETE FROM events WHERE seq <= :last;
