"""Which Headrace this is. By itself, so that stores can say so without importing the whole."""

VERSION = "0.1.0"
