/* SPDX-License-Identifier: MIT */
/*
 * guided_serve FOLDER ROUNDS: replaces libFuzzer's main in builds without it. It runs
 * fuzz_serve_guided.c over its seeds and over ROUNDS scripts that its mutators make of them. So the
 * code that `./x fuzz` runs is compiled and tested in every build.
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

/* Replaces libFuzzer's mutator: increments the last byte. */
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
	for (uint32_t i = 0; i < count; i++) /* a violation ends the program */
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
