"""The sections of a report, one module each: what a gold table says, in figures and in a sentence."""
