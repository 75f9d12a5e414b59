SRCS_scheduler := choose.c decide.c fit.c plan.c reasons.c score.c
