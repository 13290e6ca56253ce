"""What each page shows: functions from what was asked to a view. None of them changes anything."""
