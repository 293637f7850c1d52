"""Does lying pay? Expected scores of honest and dishonest reports, and the audit that compares them."""

from truthcal.truthfulness.audits import audit, audit_on
from truthcal.truthfulness.results import Audit, AuditRow, ExpectedScore
from truthcal.truthfulness.scores import expected_score

__all__ = ["Audit", "AuditRow", "ExpectedScore", "audit", "audit_on", "expected_score"]
