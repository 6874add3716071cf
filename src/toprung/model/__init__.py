"""Pure values: frozen, validated, versioned, JSON both ways. No torch and no input or output."""
