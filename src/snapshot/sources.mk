SRCS_snapshot := saved.c snapshot.c
