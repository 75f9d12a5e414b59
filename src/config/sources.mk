SRCS_config := config.c
