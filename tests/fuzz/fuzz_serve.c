/* SPDX-License-Identifier: MIT */
/*
 * fuzz_serve [SECONDS [SEED]]: a hostile client (hostile.h) on a server, beside honest ones
 * (beside.h). A script is a sequence of bytes. First those of the corpus run
 * (VIDMM_SOURCE_ROOT/tests/fuzz/corpus/serve, written by corpus/serve.py), then mutations of them
 * and new ones. fuzz_serve_guided.c runs the scripts that libFuzzer finds. fuzz_serve SCRIPT runs
 * one file.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "beside.h"

#define FIXED_ROUNDS 400u
#define STEPS_MAX    24u
#define SCRIPT_BYTES 4096u
#define CORPUS_MAX   256u

struct fuzz {
	struct beside beside;
	struct draw draw;
	uint8_t *corpus[CORPUS_MAX];
	size_t sizes[CORPUS_MAX];
	uint32_t corpus_count;
};

/* ---- scripts ---- */

static void read_corpus(struct fuzz *f)
{
	const char *root = getenv("VIDMM_SOURCE_ROOT");
	char path[1024];
	struct dirent *entry;

	snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/serve", root ? root : ".");
	DIR *folder = opendir(path);
	while (folder && (entry = readdir(folder)) && f->corpus_count < CORPUS_MAX) {
		uint8_t *bytes = malloc(SCRIPT_BYTES);
		size_t length = strlen(path);

		snprintf(path + length, sizeof(path) - length, "/%s", entry->d_name);
		FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "rb");
		path[length] = 0;
		if (!file || !bytes) {
			free(bytes);
			continue;
		}
		f->corpus[f->corpus_count] = bytes;
		f->sizes[f->corpus_count++] = fread(bytes, 1, SCRIPT_BYTES, file);
		fclose(file);
	}
	if (folder)
		closedir(folder);
}

static size_t invent(struct fuzz *f, uint8_t *script)
{
	size_t length = 0, most = (4 + draw_below(&f->draw, STEPS_MAX)) * HOSTILE_STEP_BYTES;

	/*
	 * Most scripts begin with a connection and a valid hello, so that later steps have an
	 * effect.
	 */
	if (draw_below(&f->draw, 8))
		length = hostile_opening(script, SCRIPT_BYTES);
	for (; length < most; length++) {
		script[length] = (uint8_t)draw_below(&f->draw, 256);
		if (length % HOSTILE_STEP_BYTES == 1 && draw_below(&f->draw, 2))
			script[length] = 0;
	}
	return length;
}

static size_t mutate(struct fuzz *f, uint8_t *script)
{
	uint32_t one = draw_below(&f->draw, f->corpus_count);
	uint32_t other = draw_below(&f->draw, f->corpus_count);
	size_t length = f->sizes[one];

	if (draw_below(&f->draw, 4))
		memcpy(script, f->corpus[one], length);
	else
		length = hostile_cross(&f->draw, f->corpus[one], length, f->corpus[other],
				       f->sizes[other], script, SCRIPT_BYTES);
	return hostile_mutate(&f->draw, script, length, SCRIPT_BYTES);
}

static void show(const struct beside *b, const uint8_t *script, size_t length)
{
	printf("# not true: %s\n# script:", b->wrong);
	for (size_t i = 0; i < length; i++)
		printf(" %02x", script[i]);
	printf("\n");
}

/* Runs the corpus, then others: `count` of them, or until the time is over. */
static void run_all(struct fuzz *f, time_t end)
{
	uint8_t script[SCRIPT_BYTES];

	for (uint64_t i = 0; !f->beside.wrong && (end ? time(NULL) < end : i < FIXED_ROUNDS); i++) {
		size_t length;

		if (i < f->corpus_count) {
			length = f->sizes[i];
			memcpy(script, f->corpus[i], length);
		} else {
			length = f->corpus_count && draw_below(&f->draw, 2) ? mutate(f, script)
									    : invent(f, script);
		}
		beside_run(&f->beside, script, length);
		if (f->beside.wrong)
			show(&f->beside, script, length);
	}
}

static bool run_file(struct fuzz *f, const char *path)
{
	uint8_t script[SCRIPT_BYTES];
	FILE *file = fopen(path, "rb");

	if (!file)
		return false;
	size_t length = fread(script, 1, sizeof(script), file);
	fclose(file);
	beside_run(&f->beside, script, length);
	if (f->beside.wrong)
		show(&f->beside, script, length);
	return true;
}

int main(int count, char **arguments)
{
	static struct fuzz f;
	const struct beside *b = &f.beside;
	struct stat stat_of;
	bool file = count == 2 && !stat(arguments[1], &stat_of);

	f.draw.seed = count > 2 ? strtoull(arguments[2], NULL, 0) : 1;
	printf("1..1\n");
	beside_begin(&f.beside);
	read_corpus(&f);
	if (!file || !run_file(&f, arguments[1]))
		run_all(&f, count > 1 ? time(NULL) + strtol(arguments[1], NULL, 0) : 0);
	beside_end(&f.beside);
	for (uint32_t i = 0; i < f.corpus_count; i++)
		free(f.corpus[i]);
	hostile_print_counts(stdout);
	printf("%s 1 - %llu scripts: %llu welcomes, %llu requests, %llu answers, "
	       "%llu calls done, %llu refused, %llu objects mapped, %llu words written\n",
	       b->wrong ? "not ok" : "ok", (unsigned long long)b->scripts,
	       (unsigned long long)b->welcomes, (unsigned long long)b->requests,
	       (unsigned long long)b->answers, (unsigned long long)b->done,
	       (unsigned long long)b->refusals, (unsigned long long)b->mapped,
	       (unsigned long long)b->scribbled);
	return b->wrong ? 1 : 0;
}
