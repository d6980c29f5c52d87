"""An arena in a notebook."""
