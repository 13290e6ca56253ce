"""Webhooks: a signed request that tells a job's callback url how the job ended.

Signed as Standard Webhooks 1.0 says, retried as any job is, and sent to public addresses only.
"""

from headrace.completion import WEBHOOK_TYPE as TYPE
from headrace.errors import InvalidSignature
from headrace.policy import WEBHOOKS_QUEUE as QUEUE
from headrace.webhooks.delivery import deliver
from headrace.webhooks.exchange import Limits
from headrace.webhooks.rounds import deliver_due
from headrace.webhooks.signing import new_secret, sign, verify

__all__ = [
    "QUEUE",
    "TYPE",
    "InvalidSignature",
    "Limits",
    "deliver",
    "deliver_due",
    "new_secret",
    "sign",
    "verify",
]
