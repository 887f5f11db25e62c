/* SPDX-License-Identifier: MIT */
/* The file of `vidmm check --suppress`: a rule, perhaps a part of the finding's text, a reason. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "grow.h"
#include "replay.h"

struct place {
	const char *path;
	unsigned line;
};

static bool wrong(const struct place *place, const char *why)
{
	fprintf(stderr, "vidmm: %s, line %u: %s\n", place->path, place->line, why);
	return false;
}

static char *skip_blanks(char *text)
{
	while (isspace((unsigned char)*text))
		text++;
	return text;
}

/* Ends the word and returns what follows it. */
static char *cut_word(char *text)
{
	while (*text && !isspace((unsigned char)*text))
		text++;
	if (*text)
		*text++ = '\0';
	return skip_blanks(text);
}

static void cut_blanks(char *text)
{
	size_t length = strlen(text);

	while (length && isspace((unsigned char)text[length - 1]))
		text[--length] = '\0';
}

/* Splits LINE: RULE ["PART"] REASON. */
static bool split(char *line, const struct place *place, const char *part[3])
{
	char *rest = cut_word(line), *end;

	part[0] = line;
	part[1] = NULL;
	if (*rest == '"') {
		end = strchr(rest + 1, '"');
		if (!end)
			return wrong(place, "the part of the text has no closing quote");
		*end = '\0';
		part[1] = rest + 1;
		rest = skip_blanks(end + 1);
	}
	part[2] = rest;
	if (strlen(line) >= CHECK_RULE_MAX)
		return wrong(place, "the rule's id is too long");
	return *rest || wrong(place, "no reason: expected RULE [\"PART OF THE TEXT\"] REASON");
}

static bool add(struct suppressions *all, const char *const part[3], const struct place *place)
{
	struct suppression added = {.line = place->line};

	if (!grow_array((void **)&all->all, &all->capacity, all->count, sizeof(*all->all)))
		return wrong(place, "out of memory");
	added.rule = strdup(part[0]);
	added.part = part[1] ? strdup(part[1]) : NULL;
	added.reason = strdup(part[2]);
	all->all[all->count++] = added;
	return (added.rule && added.reason && (added.part || !part[1])) ||
	       wrong(place, "out of memory");
}

static bool read_lines(FILE *file, struct place *place, struct suppressions *all)
{
	char *line = NULL;
	size_t size = 0;
	bool good = true;

	while (good && getline(&line, &size, file) >= 0) {
		const char *part[3];
		char *text = skip_blanks(line);

		place->line++;
		cut_blanks(text);
		if (*text && *text != '#')
			good = split(text, place, part) && add(all, part, place);
	}
	free(line);
	return good;
}

bool suppressions_read(const char *path, struct suppressions *all, int *status)
{
	struct place place = {.path = path};
	FILE *file = fopen(path, "r");
	bool good;

	*status = REPLAY_ENVIRONMENT;
	if (!file) {
		fprintf(stderr, "vidmm: %s: %s\n", path, strerror(errno));
		return false;
	}
	good = read_lines(file, &place, all);
	if (ferror(file)) {
		fprintf(stderr, "vidmm: %s: %s\n", path, strerror(errno));
		good = false;
	} else if (!good) {
		*status = REPLAY_BAD_INPUT;
	}
	fclose(file);
	return good;
}

uint32_t suppressions_find(const struct suppressions *all, const char *rule, const char *text)
{
	for (uint32_t i = 0; i < all->count; i++) {
		const struct suppression *s = &all->all[i];

		if (strcmp(s->rule, rule) == 0 && (!s->part || strstr(text, s->part)))
			return i + 1;
	}
	return 0;
}

void suppressions_finish(struct suppressions *all)
{
	for (uint32_t i = 0; i < all->count; i++) {
		free(all->all[i].rule);
		free(all->all[i].part);
		free(all->all[i].reason);
	}
	free(all->all);
}
