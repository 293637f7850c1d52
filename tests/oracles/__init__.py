"""Slow, obvious versions of what truthcal computes, written from the definitions. They do not use truthcal."""
