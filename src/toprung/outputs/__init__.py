"""What toprung tells: a verdict as short text, and a run as a page. Made from values alone."""
