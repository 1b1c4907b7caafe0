"""Attacks on what the library promises, at full size, and the pages of what they found."""
