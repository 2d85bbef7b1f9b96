"""Commands of the package; each is a thin shell around a function of the library."""
