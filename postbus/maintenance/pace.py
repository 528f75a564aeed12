"""How often upkeep is done, in seconds."""

from __future__ import annotations

SWEEP_SECONDS = 1.0
MAINTENANCE_SECONDS = 5.0
# How long tasks in the background may take of each turn.
TASK_SECONDS = 0.5
# In the background of a bus. A short script ends before it begins.
FIRST_SECONDS = 3.0
# Between two looks at whether the process that does it is still there.
STANDBY_SECONDS = 5.0
# A process that was not heard of for this long is taken for dead.
LEASE_SECONDS = 10.0
# After an error, or up to three times as long: then another process may have taken over, where this one cannot do the work.
RETRY_SECONDS = 5.0
# How long `close` waits for the work at hand.
STOP_SECONDS = 2.0
