SRCS_kube := bind.c client.c config.c credentials.c kube.c list_decoder.c list_watch.c nudge.c peek.c retry.c versions.c \
	watch_decoder.c
