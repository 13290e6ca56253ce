"""The manager's verbs over HTTP. Needs headrace[client]."""
