SRCS_http := address.c exchange.c listener.c tls.c
