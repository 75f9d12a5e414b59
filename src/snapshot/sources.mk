SRCS_snapshot := snapshot.c
