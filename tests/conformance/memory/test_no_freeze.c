/* SPDX-License-Identifier: MIT */
/*
 * A system without write protection (no userfaultfd, as in many containers): a locked allocation
 * is not moved, is rendered in place, and loses nothing.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "world.h"

static const struct client_options small = {.vram_bytes = 4 * MIB};

static void forbid_userfaultfd(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static void lock_35_without_write_protection_a_locked_allocation_renders_in_place(void **state)
{
	struct world w;

	forbid_userfaultfd();
	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_in(&w.device, 64 * KIB, CPU, 0),
		      out = allocate_in(&w.device, 64 * KIB, CPU, 0);

	client_write(&w.device, a, 64 * KIB, 0x3500);
	use_now(&w, a, true);
	uint32_t *words = client_lock(&w.device, a, 0);
	words[1] = 77;
	client_copy(&w.context, a, out, 64 * KIB);
	client_submit(&w.context);
	client_idle(&w.client);
	assert_int_equal(client_residency(&w.device, a), IN_VRAM);
	const uint32_t *copy = client_lock(&w.device, out, 0);
	assert_int_equal(copy[0], 0x3500);
	assert_int_equal(copy[1], 77);
	assert_int_equal(client_unlock(&w.device, out), S_OK);
	words[2] = 78;
	client_fill(&w.context, a, 4, 79);
	client_submit(&w.context);
	client_idle(&w.client);
	assert_int_equal(words[0], 79);
	assert_int_equal(words[2], 78);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void pag_16_without_write_protection_a_locked_allocation_is_no_victim(void **state)
{
	struct world w;

	forbid_userfaultfd();
	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_in(&w.device, 2 * MIB, CPU, VRAM),
		      b = allocate_in(&w.device, 3 * MIB, CPU, 0);

	use_now(&w, a, true);
	uint32_t *words = client_lock(&w.device, a, 0);
	words[0] = 5;
	use_now(&w, b, true); /* no free space besides it */
	assert_int_equal(client_residency(&w.device, a), IN_VRAM);
	assert_int_equal(client_residency(&w.device, b), IN_APERTURE);
	assert_int_equal(words[0], 5);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	world_stop(&w);
}

static void pag_16_pnp_05_without_write_protection_a_lock_refuses_power_off(void **state)
{
	struct world w;

	forbid_userfaultfd();
	world_start(&w, state, &small);
	D3DKMT_HANDLE a = allocate_in(&w.device, MIB, CPU, VRAM),
		      b = allocate_in(&w.device, MIB, CPU, VRAM);

	client_write(&w.device, b, MIB, 0x700);
	use_now(&w, a, true);
	use_now(&w, b, true);
	uint32_t *words = client_lock(&w.device, a, 0);
	words[0] = 5;
	assert_int_equal(
		vidmm_adapter_set_power(w.client.adapter, VIDMM_POWER_D3, VIDMM_SLEEP_STANDBY),
		STATUS_NOT_SUPPORTED);
	assert_int_equal(client_residency(&w.device, a), IN_VRAM);
	assert_int_equal(words[0], 5);
	assert_int_equal(client_unlock(&w.device, a), S_OK);
	client_expect(&w.device, b, MIB, 0x700);
	assert_int_equal(
		vidmm_adapter_set_power(w.client.adapter, VIDMM_POWER_D3, VIDMM_SLEEP_STANDBY), 0);
	assert_int_equal(vidmm_adapter_set_power(w.client.adapter, VIDMM_POWER_D0, 0), 0);
	client_expect(&w.device, b, MIB, 0x700);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_LINUX(lock_35_without_write_protection_a_locked_allocation_renders_in_place),
		ON_LINUX(pag_16_without_write_protection_a_locked_allocation_is_no_victim),
		ON_LINUX(pag_16_pnp_05_without_write_protection_a_lock_refuses_power_off),
	};

	return cmocka_run_group_tests_name("without write protection", tests, NULL, NULL);
}
