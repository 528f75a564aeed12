"""A history of deliveries, and whether it kept the promises.

Processes record what they ask and what they are told (`RecordedConsumer`). Afterwards `check` goes through what all of them wrote
and reports what certainly went wrong. What a call lost on the way, clocks or a crash can explain is not reported.
"""

from tests.history.checker import check
from tests.history.history import History, Lease, Settlement
from tests.history.recorded_consumer import RecordedConsumer
from tests.history.recorder import Recorder, read
from tests.history.remainder import Remainder, remainder_of
from tests.history.rules.channels import Channels, check_channels
from tests.history.rules.leases import check_keys_apart
from tests.history.rules.order import Scope, by_key, by_key_and_level, by_partition
from tests.history.violation import Violation

__all__ = [
    "Channels",
    "History",
    "Lease",
    "RecordedConsumer",
    "Recorder",
    "Remainder",
    "Scope",
    "Settlement",
    "Violation",
    "by_key",
    "by_key_and_level",
    "by_partition",
    "check",
    "check_channels",
    "check_keys_apart",
    "read",
    "remainder_of",
]
