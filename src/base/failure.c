/* SPDX-License-Identifier: MIT */
/* Decides at a failure point that a test has armed. (LOCK-32, Q-480) */
#include "base/failure.h"
#include "base/mix.h"

#include <errno.h>
#include <string.h>

/*
 * Per system thread, so that a test arms its thread and not the others of a running world. On the
 * simulator all threads of a world are one system thread.
 */
_Thread_local struct vmm_failures vmm_failures __attribute__((tls_model("initial-exec")));

static const int error_of[VMM_FAILURES] = {
	[VMM_FAIL_ALLOCATION] = ENOMEM, [VMM_FAIL_MAPPING] = ENOMEM, [VMM_FAIL_UNMAPPING] = ENOMEM,
	[VMM_FAIL_DESCRIPTOR] = EMFILE, [VMM_FAIL_THREAD] = EAGAIN,
};

bool vmm_fails_armed(enum vmm_failure kind)
{
	struct vmm_failures *f = &vmm_failures;

	if (f->one_in) {
		if (vmm_mix64(f->random += VMM_MIX64_STEP) % f->one_in)
			return false;
	} else {
		if (--f->countdown[kind])
			return false;
		f->armed &= ~(1u << kind);
	}
	errno = error_of[kind];
	return true;
}

uint32_t vmm_fail_after(enum vmm_failure kind, uint32_t n)
{
	struct vmm_failures *f = &vmm_failures;
	uint32_t left = f->countdown[kind];

	if (f->one_in)
		vmm_fail_by_seed(0, 0, 0);
	f->countdown[kind] = n;
	f->armed = n ? f->armed | 1u << kind : f->armed & ~(1u << kind);
	return left;
}

void vmm_fail_by_seed(uint32_t kinds, uint64_t seed, uint32_t one_in)
{
	struct vmm_failures *f = &vmm_failures;

	memset(f->countdown, 0, sizeof(f->countdown));
	f->armed = one_in ? kinds & ((1u << VMM_FAILURES) - 1) : 0;
	f->one_in = f->armed ? one_in : 0;
	f->random = seed;
}

void vmm_calloc_fail_after(uint32_t n)
{
	(void)vmm_fail_after(VMM_FAIL_ALLOCATION, n);
}
