"""What runs beside candidate code, in the candidate's own process. It knows no secrets."""
