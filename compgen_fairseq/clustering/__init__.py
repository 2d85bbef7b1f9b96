"""Word classes from corpus statistics."""
