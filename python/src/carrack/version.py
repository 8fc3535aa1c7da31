"""The version of this package: that of the program."""

VERSION = "0.1.0"
