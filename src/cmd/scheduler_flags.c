/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/scheduler_flags.h"

#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <string.h>

#define COLUMN 34

struct row {
	const char *text; /* NULL: a heading */
	const char *argument;
	const char *value;
	const char *help;
	size_t offset;
};

static const struct row rows[] = {
#define GROUP(heading) { NULL, NULL, NULL, heading, 0 },
#define FLAG(name, text, argument, value, help)                                                    \
	{ text, argument, value, help, offsetof(struct scheduler_flags, name) },
#include "cmd/scheduler_flags.def"
#undef FLAG
#undef GROUP
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static const char **slot(struct scheduler_flags *flags, const struct row *row)
{
	return (const char **)(void *)((char *)flags + row->offset);
}

int scheduler_flags_parse(int argc, char **argv, struct scheduler_flags *ret_flags,
			  struct vg_err *err)
{
	struct option options[ROWS + 1] = { 0 };
	struct scheduler_flags flags = { 0 };
	size_t count = 0;
	int index;
	int c;

	for (size_t i = 0; i < ROWS; i++) {
		if (!rows[i].text)
			continue;
		*slot(&flags, &rows[i]) = rows[i].value;
		options[count].name = rows[i].text;
		options[count].has_arg = rows[i].argument ? required_argument : no_argument;
		options[count].val = (int)i + 1;
		count++;
	}
	opterr = 0;
	optind = 1;
	while ((c = getopt_long(argc, argv, ":", options, &index)) != -1) {
		if (c == ':')
			return vg_fail(err, EINVAL, "%s needs an argument; see --help",
				       argv[optind - 1]);
		if (c == '?')
			return vg_fail(err, EINVAL, "%s is not a flag of this program; see --help",
				       argv[optind - 1]);
		*slot(&flags, &rows[c - 1]) = rows[c - 1].argument ? optarg : "true";
	}
	if (optind < argc)
		return vg_fail(err, EINVAL,
			       "%s: arguments other than flags are not taken; see --help",
			       argv[optind]);
	*ret_flags = flags;
	return 0;
}

void scheduler_flags_help(FILE *to)
{
	fprintf(to, "Usage: vgpu-scheduler --config FILE [--kubeconfig FILE | --snapshot FILE] "
		    "[FLAGS]\n"
		    "\n"
		    "Scheduler extender and admission webhook that shares GPUs between pods.\n");
	for (size_t i = 0; i < ROWS; i++) {
		const struct row *row = &rows[i];
		int used;

		if (!row->text) {
			fprintf(to, "\n%s:\n", row->help);
			continue;
		}
		used = fprintf(to, "  --%s%s%s", row->text, row->argument ? " " : "",
			       row->argument ? row->argument : "");
		if (used >= COLUMN) {
			fputc('\n', to);
			used = 0;
		}
		fprintf(to, "%*s%s", COLUMN - used, "", row->help);
		if (row->value)
			fprintf(to, " (default: %s)", *row->value ? row->value : "\"\"");
		fputc('\n', to);
	}
	fprintf(to, "\nSignals: SIGTERM and SIGINT end it after the requests in flight; SIGHUP "
		    "reads the "
		    "certificate again.\nExit status: 0 ended as asked, 1 could not start, 2 wrong "
		    "flags or configuration.\n");
}
