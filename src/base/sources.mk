SRCS_base := arena.c buf.c clock.c err.c file.c log.c map.c mem.c num.c str.c
