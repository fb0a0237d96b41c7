"""EASY backfill: the first job that waits has a reservation, and later jobs start if they do not delay it.

Source: Lifka, "The ANL/IBM SP Scheduling System", JSSPP 1995; Mu'alem and Feitelson, IEEE TPDS 12 (2001).
"""

from __future__ import annotations

from weft.scheduling.policies.first_fit import first_hosts
from weft.scheduling.policy import Policy

KIND = Policy("backfill", "EASY backfill, on the first hosts that are free", "easy", first_hosts)
