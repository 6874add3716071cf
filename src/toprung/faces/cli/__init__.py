"""The command line. Verb modules import nothing heavy until they are called."""
