SRCS_config := config.c config_keys.c
