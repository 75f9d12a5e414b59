SRCS_scheduler := decide.c fit.c reasons.c score.c
