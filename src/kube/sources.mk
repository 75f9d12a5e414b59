SRCS_kube := config.c client.c kube.c bind.c list_watch.c watch_decoder.c
