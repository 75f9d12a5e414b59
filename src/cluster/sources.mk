SRCS_cluster := bind.c cluster.c copy.c ledger.c place.c sink.c
