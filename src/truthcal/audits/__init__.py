"""Audits: expected scores of honest and dishonest reports under any measure."""
