SRCS_scheduler := choose.c decide.c fit.c links.c plan.c reasons.c score.c
