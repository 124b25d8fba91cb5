"""Descriptions of networks: the bundled files, their checks, pictures, import and export."""
