/* SPDX-License-Identifier: MIT */
/* Which call fails (fault.h). */
#include "fault.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define SEEDED_ONE_IN 64u

const char *const fault_kind_name[FAULT_KINDS] = {"memory", "mapping", "descriptor", "thread",
						  "socket"};

static struct {
	atomic_bool armed;
	_Atomic int kind; /* -1: all, by seed */
	_Atomic uint32_t failing, failed;
	_Atomic uint32_t calls[FAULT_KINDS];
	_Atomic uint64_t random;
} faults;
static _Thread_local bool spared;

static void begin(int kind, uint32_t failing, uint64_t seed)
{
	atomic_store(&faults.armed, false);
	for (int i = 0; i < FAULT_KINDS; i++)
		atomic_store(&faults.calls[i], 0);
	atomic_store(&faults.failed, 0);
	atomic_store(&faults.kind, kind);
	atomic_store(&faults.failing, failing);
	atomic_store(&faults.random, seed);
	atomic_store(&faults.armed, true);
}

void fault_arm(enum fault_kind kind, uint32_t n)
{
	begin((int)kind, n, 0);
}

void fault_by_seed(uint64_t seed)
{
	begin(-1, 0, seed);
}

uint32_t fault_end(void)
{
	atomic_store(&faults.armed, false);
	return atomic_load(&faults.failed);
}

uint32_t fault_calls(enum fault_kind kind)
{
	return atomic_load(&faults.calls[kind]);
}

static bool offered;

void fault_offer(void)
{
	offered = true;
}

bool fault_is_offered(void)
{
	return offered;
}

static bool read_number(const char *text, uint64_t *number)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*number = strtoull(text, &end, 10);
	return !*end && !errno;
}

bool fault_parse(const char *text, struct fault *fault)
{
	size_t length = strcspn(text, ":");

	*fault = (struct fault){.wanted = true};
	if (!text[length] || !read_number(text + length + 1, &fault->number))
		return false;
	if (length == 4 && !strncmp(text, "seed", 4)) {
		fault->seeded = true;
		return true;
	}
	for (int i = 0; i < FAULT_KINDS; i++)
		if (strlen(fault_kind_name[i]) == length &&
		    !strncmp(text, fault_kind_name[i], length)) {
			fault->kind = (enum fault_kind)i;
			return fault->number <= UINT32_MAX;
		}
	return false;
}

void fault_begin(const struct fault *fault)
{
	if (fault->wanted && fault->seeded)
		fault_by_seed(fault->number);
	else if (fault->wanted)
		fault_arm(fault->kind, (uint32_t)fault->number);
}

void fault_spare_thread(void)
{
	spared = true;
}

/* splitmix64 */
static uint64_t draw(void)
{
	uint64_t x = atomic_fetch_add(&faults.random, 0x9E3779B97F4A7C15u) + 0x9E3779B97F4A7C15u;

	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
	x = (x ^ x >> 27) * 0x94D049BB133111EBu;
	return x ^ x >> 31;
}

bool fault_fails(enum fault_kind kind)
{
	if (!atomic_load(&faults.armed) || spared)
		return false;
	uint32_t number = atomic_fetch_add(&faults.calls[kind], 1) + 1;
	int armed = atomic_load(&faults.kind);
	bool fails = armed < 0 ? draw() % SEEDED_ONE_IN == 0
			       : armed == (int)kind && number == atomic_load(&faults.failing);

	if (fails)
		atomic_fetch_add(&faults.failed, 1);
	return fails;
}
