SRCS_device := allocation.c annotation.c class.c json.c links_codec.c node.c node_codec.c pod.c pod_codec.c pod_copy.c quantity.c quota_codec.c register_codec.c request.c
