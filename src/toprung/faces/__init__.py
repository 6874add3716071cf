"""The doors: thin, over `app`, one verb per file."""
