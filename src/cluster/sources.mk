SRCS_cluster := bind.c cluster.c copy.c ledger.c nudge.c place.c quota.c sink.c
