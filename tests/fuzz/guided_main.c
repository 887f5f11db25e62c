/* SPDX-License-Identifier: MIT */
/*
 * In the place of libFuzzer's main: fuzz_serve_guided.c over its seeds, and over so many scripts as
 * its own functions make of them, in every build of the suite. So what only `./x fuzz` would run is
 * compiled and works.
 *
 * guided_serve FOLDER ROUNDS
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guided.h"

#define SCRIPT_BYTES 1024u
#define SEEDS_MAX    256u

static uint8_t script[SEEDS_MAX][SCRIPT_BYTES];
static size_t size[SEEDS_MAX];
static uint32_t count;

/* libFuzzer's, but for the means: the last byte goes round. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t max_size)
{
	if (bytes > 0 && bytes <= max_size)
		data[bytes - 1]++;
	return bytes;
}

static void read_seeds(const char *folder)
{
	struct dirent **entries = NULL;
	int found = scandir(folder, &entries, NULL, alphasort);

	for (int i = 0; i < found; i++) {
		char path[1024];

		snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
		FILE *file = entries[i]->d_name[0] == '.' || count == SEEDS_MAX ? NULL
										: fopen(path, "rb");
		if (file) {
			size[count] = fread(script[count], 1, SCRIPT_BYTES, file);
			fclose(file);
			count++;
		}
		free(entries[i]);
	}
	free(entries);
}

int main(int arguments, char **argument)
{
	uint8_t changed[SCRIPT_BYTES];
	unsigned int rounds = arguments == 3 ? (unsigned int)strtoul(argument[2], NULL, 0) : 0;

	printf("1..1\n");
	if (arguments == 3)
		read_seeds(argument[1]);
	if (count == 0 || rounds == 0) {
		printf("not ok 1 - no seeds: guided_serve FOLDER ROUNDS\n");
		return 1;
	}
	for (uint32_t i = 0; i < count; i++) /* what it finds ends the program */
		(void)LLVMFuzzerTestOneInput(script[i], size[i]);
	for (unsigned int i = 0; i < rounds; i++) {
		uint32_t one = i % count, other = i * 7 % count;
		size_t bytes = LLVMFuzzerCustomCrossOver(script[one], size[one], script[other],
							 size[other], changed, sizeof(changed), i);

		bytes = LLVMFuzzerCustomMutator(changed, bytes, sizeof(changed), i);
		(void)LLVMFuzzerTestOneInput(changed, bytes);
	}
	printf("ok 1 - %u seeds, %u more scripts\n", count, rounds);
	return 0;
}
