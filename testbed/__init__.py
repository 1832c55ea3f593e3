"""The testbed: profiles and studies are parsed, resolved into a plan of cells, and run."""

__version__ = "0.1.0"
