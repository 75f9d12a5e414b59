SRCS_server := admission_codec.c bind.c explain.c explain_codec.c extender_codec.c filter.c health.c \
	histogram.c job.c json_in.c json_out.c metrics.c metrics_text.c prioritize.c quota_json.c server.c \
	state.c webhook.c
