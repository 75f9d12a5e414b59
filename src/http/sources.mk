SRCS_http := address.c http.c tls.c
