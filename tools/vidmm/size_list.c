/* SPDX-License-Identifier: MIT */
#include "size_list.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "comma_list.h"
#include "units.h"

#define PAGE 4096

static bool add(struct size_list *list, struct memory_size size)
{
	if (list->count == SIZE_LIST_MAX)
		return false;
	list->sizes[list->count++] = size;
	return true;
}

static double value_of(const struct memory_size *size)
{
	return size->bytes ? (double)size->bytes : size->percent;
}

/* Returns FROM times FACTOR. */
static struct memory_size scaled(const struct memory_size *from, double factor)
{
	struct memory_size size = *from;

	size.percent *= factor;
	if (size.bytes) {
		size.bytes = (uint64_t)round((double)size.bytes * factor / PAGE) * PAGE;
		if (!size.bytes)
			size.bytes = PAGE;
	}
	return size;
}

static bool add_doubled(struct size_list *list, const struct memory_size *from,
			const struct memory_size *to)
{
	double ratio = value_of(to) / value_of(from);

	for (double factor = 1; factor < ratio; factor *= 2) {
		if (!add(list, factor > 1 ? scaled(from, factor) : *from))
			return false;
	}
	return add(list, *to);
}

static bool add_steps(struct size_list *list, const struct memory_size *from,
		      const struct memory_size *to, uint64_t count)
{
	double ratio = value_of(to) / value_of(from);

	if (count < 2 || count > SIZE_LIST_MAX || !add(list, *from))
		return false;
	for (uint64_t i = 1; i < count - 1; i++) {
		if (!add(list, scaled(from, pow(ratio, (double)i / (double)(count - 1)))))
			return false;
	}
	return add(list, *to);
}

/* TEXT is FROM, END the ".." behind it; both may be changed. */
static bool add_range(struct size_list *list, char *text, char *end)
{
	static const char kind[] = ":geometric";
	struct memory_size from, to;
	char *colon = strchr(end, ':');
	uint64_t count;

	if (!colon || strncmp(colon, kind, sizeof(kind) - 1) != 0)
		return false;
	*end = *colon = '\0';
	if (!memory_size_parse(text, &from) || !memory_size_parse(end + 2, &to) ||
	    !from.bytes != !to.bytes || from.largest != to.largest ||
	    !(value_of(&from) < value_of(&to)))
		return false;
	text = colon + sizeof(kind) - 1;
	if (*text == '\0')
		return add_doubled(list, &from, &to);
	return *text == ':' && units_parse_u64(text + 1, &count) &&
	       add_steps(list, &from, &to, count);
}

static bool add_element(void *context, char *text)
{
	struct size_list *list = context;
	char *dots = strstr(text, "..");
	struct memory_size size;

	if (dots)
		return add_range(list, text, dots);
	return memory_size_parse(text, &size) && add(list, size);
}

bool size_list_parse(const char *text, struct size_list *list)
{
	list->count = 0;
	return comma_list_each(text, add_element, list);
}
