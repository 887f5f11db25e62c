/* SPDX-License-Identifier: MIT */
/* Findings and reasons for clients that ask for them in their hello (src/serve/texts.c). */
#include "raw_client.h"

#include <string.h>

static char lines[VMM_WIRE_TEXTS_BYTES + 1];

/* A call that fails with a finding about its device. Returns the flags of the answer. */
static uint32_t fail_a_call(struct raw *raw, D3DKMT_HANDLE device)
{
	D3DKMT_DESTROYDEVICE args = {.hDevice = device};

	assert_int_equal(raw_call(raw, "D3DKMTDestroyDevice", &args), STATUS_INVALID_PARAMETER);
	return raw->answer.answered;
}

/* Takes the lines into `lines`. Returns how many the host has dropped. */
static uint32_t take(struct raw *raw)
{
	struct vmm_wire_texts args = {.lines = (uint8_t *)lines, .bytes = VMM_WIRE_TEXTS_BYTES};

	memset(lines, 0, sizeof(lines));
	assert_int_equal(raw_call(raw, "texts", &args), STATUS_SUCCESS);
	assert_true(args.bytes <= VMM_WIRE_TEXTS_BYTES);
	lines[args.bytes] = 0;
	return args.lost;
}

static void q_172_a_client_that_asked_gets_what_concerns_it(void **state)
{
	struct vmm_wire_texts args = {.lines = (uint8_t *)lines, .bytes = VMM_WIRE_TEXTS_BYTES};
	struct served served;
	struct raw one, two, silent;

	(void)state;
	served_start(&served, NULL, 0);
	raw_open_asking(&one, &served, "one");
	raw_open_asking(&two, &served, "two");
	raw_open(&silent, &served, "silent");
	(void)raw_device(&one);
	assert_int_equal(one.answer.answered, VMM_ANSWER_MADE);

	assert_int_equal(fail_a_call(&one, 0x1111), VMM_ANSWER_MADE | VMM_ANSWER_TEXTS);
	assert_int_equal(fail_a_call(&two, 0x2222), VMM_ANSWER_MADE | VMM_ANSWER_TEXTS);
	assert_int_equal(fail_a_call(&silent, 0x3333), VMM_ANSWER_MADE);
	assert_int_equal(take(&one), 0);
	assert_non_null(strstr(lines, "0x00001111"));
	assert_null(strstr(lines, "0x00002222"));
	assert_null(strstr(lines, "0x00003333"));
	assert_int_equal(lines[strlen(lines) - 1], '\n');
	assert_int_equal(one.answer.answered, VMM_ANSWER_MADE);
	assert_int_equal(take(&one), 0);
	assert_string_equal(lines, "");
	assert_int_equal(take(&two), 0);
	assert_non_null(strstr(lines, "0x00002222"));
	/* A client that did not ask gets none. */
	assert_int_equal(raw_call(&silent, "texts", &args), STATUS_NOT_SUPPORTED);
	client_forget(&served.client);
	raw_disconnect(&silent);
	served_part(&served, &one, &two);
}

static void q_172_the_host_keeps_a_limited_number_and_counts_the_rest(void **state)
{
	enum { FAILURES = 1000 };
	struct vmm_wire_texts small = {.lines = (uint8_t *)lines, .bytes = 100};
	struct served served;
	struct raw one;

	(void)state;
	served_start(&served, NULL, 0);
	raw_open_asking(&one, &served, "one");
	for (uint32_t i = 0; i < FAILURES; i++)
		(void)fail_a_call(&one, 0x1000 + i);
	assert_int_equal(raw_call(&one, "texts", &small), STATUS_BUFFER_TOO_SMALL);
	assert_int_equal(raw_call(&one, "texts", NULL), STATUS_INVALID_PARAMETER);
	uint32_t lost = take(&one), kept = 0;

	for (const char *line = lines; *line; line = strchr(line, '\n') + 1)
		kept++;
	assert_true(lost && kept);
	assert_int_equal(kept + lost, FAILURES);
	(void)fail_a_call(&one, 0x7777);
	assert_int_equal(take(&one), 0);
	assert_non_null(strstr(lines, "0x00007777"));
	client_forget(&served.client);
	served_part(&served, &one, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(q_172_a_client_that_asked_gets_what_concerns_it),
		cmocka_unit_test(q_172_the_host_keeps_a_limited_number_and_counts_the_rest),
	};

	return cmocka_run_group_tests_name("serve: texts", tests, NULL, NULL);
}
