/* SPDX-License-Identifier: MIT */
/*
 * fuzz_serve [SECONDS [SEED]]: a client that means harm (hostile.h) against a server, while an honest process keeps what is its own on the same
 * adapter, with less video memory than both want. Nothing crashes and nothing hangs; no byte of the honest one's comes to the other by whatever
 * way; the honest one finds what it wrote; and when the harmful one is gone, so is everything it made: allocations, threads, descriptors.
 *
 * A script is bytes: those of the corpus (VIDMM_SOURCE_ROOT/tests/fuzz/corpus/serve), then mutations of them and new ones. Built with
 * -DFUZZER it is a target for libFuzzer instead.
 */
#include <support/client.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "hostile.h"

#define KIB          1024u
#define FIXED_ROUNDS 400u
#define SCRIPT_BYTES 160u
#define CORPUS_MAX   256u
#define HONEST       4u
#define HONEST_BYTES (96u * KIB)
#define HANG_S       120u

struct neighbour {
	struct client client;
	struct client_device device;
	D3DKMT_HANDLE allocations[HONEST];
	uint32_t generation;
};

struct fuzz {
	struct neighbour honest;
	struct draw draw;
	uint8_t *corpus[CORPUS_MAX];
	size_t sizes[CORPUS_MAX];
	uint32_t corpus_count;
	uint64_t welcomes, requests, answers, done, refusals, mapped;
	const char *wrong;
};

/* ---- the honest one ---- */

static uint64_t canary(uint32_t allocation, uint32_t generation)
{
	uint64_t word = 0;

	memcpy(&word, HOSTILE_CANARY, HOSTILE_CANARY_BYTES);
	return word | (uint64_t)(allocation << 8 | (generation & 0xFF)) << 48;
}

/* Finds what it wrote the last time, and writes anew. */
static const char *keep(struct neighbour *n)
{
	const char *wrong = NULL;

	for (uint32_t i = 0; i < HONEST; i++) {
		uint64_t *words = client_lock(&n->device, n->allocations[i], 0);

		for (uint32_t k = 0; k < HONEST_BYTES / 8; k++) {
			if (n->generation && words[k] != canary(i, n->generation))
				wrong = "the honest client's bytes have changed";
			words[k] = canary(i, n->generation + 1);
		}
		assert_int_equal(client_unlock(&n->device, n->allocations[i]), 0);
	}
	n->generation++;
	return wrong;
}

static void begin(struct neighbour *n)
{
	client_start(&n->client, &(struct client_options){.kind = VIDMM_HOST_LINUX,
							  .vram_bytes = 512 * KIB,
							  .aperture_bytes = 4096 * KIB,
							  .system_memory_bytes = 64u << 20});
	client_open(&n->client, &n->device);
	for (uint32_t i = 0; i < HONEST; i++)
		n->allocations[i] =
			client_allocate(&n->device, HONEST_BYTES, SOFTGPU_ALLOCATION_CPU_VISIBLE);
	(void)keep(n);
}

/* ---- one script ---- */

static uint32_t count_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	uint32_t count = 0;

	while (folder && readdir(folder))
		count++;
	if (folder)
		closedir(folder);
	return count;
}

static uint64_t count_allocations(struct neighbour *n)
{
	struct vidmm_adapter_statistics statistics = {.struct_size = sizeof(statistics)};

	vidmm_adapter_statistics(n->client.adapter, &statistics);
	return statistics.allocations;
}

static void note(struct fuzz *f, const char *wrong)
{
	if (wrong && !f->wrong)
		f->wrong = wrong;
}

static void run(struct fuzz *f, const uint8_t *script, size_t bytes)
{
	static struct hostile hostile;
	const struct vidmm_server_options options = {
		.struct_size = sizeof(options),
		.limits = {.channels = 4, .handles = 200, .memory_bytes = 8u << 20},
		.clients_max = 4,
	};
	struct vidmm_server *server;

	alarm(HANG_S);
	uint32_t descriptors = count_descriptors();
	uint64_t allocations = count_allocations(&f->honest);
	assert_int_equal(vidmm_server_create(f->honest.client.host, &options, &server), 0);
	hostile_run(&hostile, server, script, bytes);
	note(f, keep(&f->honest));
	vidmm_server_destroy(server);
	note(f, hostile.wrong);
	note(f, keep(&f->honest));
	vidmm_adapter_check(f->honest.client.adapter);
	if (count_descriptors() != descriptors)
		note(f, "descriptors are left");
	if (count_allocations(&f->honest) != allocations)
		note(f, "allocations are left");
	f->welcomes += hostile.welcomes;
	f->requests += hostile.requests;
	f->answers += hostile.answers;
	f->done += hostile.done;
	f->refusals += hostile.refusals;
	f->mapped += hostile.mapped;
	alarm(0);
}

#ifdef FUZZER

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz f;

	if (!f.honest.generation)
		begin(&f.honest);
	run(&f, data, size);
	if (f.wrong) {
		fprintf(stderr, "not true: %s\n", f.wrong);
		abort();
	}
	return 0;
}

#else

/* ---- scripts ---- */

static void read_corpus(struct fuzz *f)
{
	const char *root = getenv("VIDMM_SOURCE_ROOT");
	char path[1024];
	struct dirent *entry;

	snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/serve", root ? root : ".");
	DIR *folder = opendir(path);
	while (folder && (entry = readdir(folder)) && f->corpus_count < CORPUS_MAX) {
		uint8_t *bytes = malloc(4096);
		size_t length = strlen(path);

		snprintf(path + length, sizeof(path) - length, "/%s", entry->d_name);
		FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "rb");
		path[length] = 0;
		if (!file || !bytes) {
			free(bytes);
			continue;
		}
		f->corpus[f->corpus_count] = bytes;
		f->sizes[f->corpus_count++] = fread(bytes, 1, 4096, file);
		fclose(file);
	}
	if (folder)
		closedir(folder);
}

static size_t invent(struct fuzz *f, uint8_t *script)
{
	size_t length = 8 + draw_below(&f->draw, SCRIPT_BYTES - 8);

	for (size_t i = 0; i < length; i++)
		script[i] = (uint8_t)draw_below(&f->draw, 256);
	/* Most get somewhere: connect and a good hello come first. */
	if (draw_below(&f->draw, 8)) {
		const uint8_t opening[] = {1, 0, 15, 4, 0, 0, 4, 0, 0};

		memcpy(script, opening, length < sizeof(opening) ? length : sizeof(opening));
	}
	return length;
}

static size_t mutate(struct fuzz *f, uint8_t *script)
{
	uint32_t which = draw_below(&f->draw, f->corpus_count);
	size_t length = f->sizes[which] < SCRIPT_BYTES ? f->sizes[which] : SCRIPT_BYTES;

	memcpy(script, f->corpus[which], length);
	for (uint32_t i = 1 + draw_below(&f->draw, 6); i > 0 && length; i--)
		script[draw_below(&f->draw, (uint32_t)length)] = (uint8_t)draw_below(&f->draw, 256);
	return length;
}

static void show(const struct fuzz *f, const uint8_t *script, size_t length)
{
	printf("# not true: %s\n# script:", f->wrong);
	for (size_t i = 0; i < length; i++)
		printf(" %02x", script[i]);
	printf("\n");
}

int main(int count, char **arguments)
{
	static struct fuzz f;
	time_t end = count > 1 ? time(NULL) + strtol(arguments[1], NULL, 0) : 0;
	uint8_t script[SCRIPT_BYTES > 4096 ? SCRIPT_BYTES : 4096];
	uint64_t rounds = 0;
	size_t length = 0;

	f.draw.seed = count > 2 ? strtoull(arguments[2], NULL, 0) : 1;
	printf("1..1\n");
	begin(&f.honest);
	read_corpus(&f);
	for (; !f.wrong && (count > 1 ? time(NULL) < end : rounds < FIXED_ROUNDS); rounds++) {
		if (rounds < f.corpus_count) {
			length = f.sizes[rounds];
			memcpy(script, f.corpus[rounds], length);
		} else {
			length = f.corpus_count && draw_below(&f.draw, 2) ? mutate(&f, script)
									  : invent(&f, script);
		}
		run(&f, script, length);
	}
	if (f.wrong)
		show(&f, script, length);
	client_close(&f.honest.device);
	client_stop(&f.honest.client);
	for (uint32_t i = 0; i < f.corpus_count; i++)
		free(f.corpus[i]);
	printf("%s 1 - %llu scripts: %llu welcomes, %llu requests, %llu answers, %llu calls done, %llu refused, %llu objects mapped\n",
	       f.wrong ? "not ok" : "ok", (unsigned long long)rounds,
	       (unsigned long long)f.welcomes, (unsigned long long)f.requests,
	       (unsigned long long)f.answers, (unsigned long long)f.done,
	       (unsigned long long)f.refusals, (unsigned long long)f.mapped);
	return f.wrong ? 1 : 0;
}

#endif
