"""Null distributions: closed forms, quadratic forms in normals, redrawn outcomes."""
