"""Results: frozen dataclasses that public functions return, and the text they print."""
