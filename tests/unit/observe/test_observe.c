/* SPDX-License-Identifier: MIT */
/* The event stream in one thread: counters, stamps, subscriptions, texts, hash. */
#include <string.h>

#include "support/test.h"

#include "observe/observe.h"

static uint64_t fake_now(void *context)
{
	return *(uint64_t *)context += 10;
}

struct seen {
	uint32_t count;
	struct vidmm_event last;
	char text[VMM_OBSERVE_TEXT_BYTES];
};

static void see(void *context, const struct vidmm_event *event, const char *text)
{
	struct seen *seen = context;

	seen->count++;
	seen->last = *event;
	strcpy(seen->text, text ? text : "");
}

struct fixture {
	uint64_t now;
	struct vmm_observe *observe;
};

static struct vmm_observe *make_stream(struct fixture *fixture, bool threads, bool hash)
{
	struct vmm_observe_config config = {.virtual_ns = &fixture->now,
					    .clock = fake_now,
					    .clock_context = &fixture->now,
					    .threads = threads,
					    .hash = hash};

	fixture->now = 0;
	assert_int_equal(vmm_observe_create(&config, &fixture->observe), VMM_OK);
	return fixture->observe;
}

static void counters_hold_the_count_and_four_sums_of_each_type(void **state)
{
	struct fixture f;
	struct vmm_observe_counter counter;

	(void)state;
	for (unsigned threads = 0; threads < 2; threads++) {
		make_stream(&f, threads, false);
		vmm_event(f.observe, VIDMM_EVENT_LOCK, 1, 7, 0, 1, 20, 300, UINT64_MAX);
		vmm_event(f.observe, VIDMM_EVENT_LOCK, 2, 8, 0, 2, 30, 400, 2);
		vmm_event(f.observe, VIDMM_EVENT_FENCE, 0, 0, 0, 5, 0, 0, 0);
		vmm_observe_counter(f.observe, VIDMM_EVENT_LOCK, &counter);
		assert_int_equal(counter.count, 2);
		assert_int_equal(counter.sum[0], 3);
		assert_int_equal(counter.sum[1], 50);
		assert_int_equal(counter.sum[2], 700);
		assert_int_equal(counter.sum[3], 1); /* sums wrap */
		vmm_observe_counter(f.observe, VIDMM_EVENT_FENCE, &counter);
		assert_int_equal(counter.count, 1);
		assert_int_equal(counter.sum[0], 5);
		vmm_observe_counter(f.observe, VIDMM_EVENT_WAIT, &counter);
		assert_int_equal(counter.count, 0);
		vmm_observe_destroy(f.observe);
	}
}

static void every_event_is_stamped_without_threads(void **state)
{
	struct fixture f;
	struct vidmm_event event = {.type = VIDMM_EVENT_WAIT};

	(void)state;
	make_stream(&f, false, false);
	for (uint64_t i = 1; i <= 5; i++) {
		f.now = 10 * i;
		vmm_observe_emit(f.observe, &event, NULL);
		assert_int_equal(event.sequence, i);
		assert_int_equal(event.time_ns, 10 * i);
	}
	vmm_observe_destroy(f.observe);
}

static void with_threads_an_unwanted_event_is_only_counted(void **state)
{
	struct fixture f;
	struct vidmm_event event = {.type = VIDMM_EVENT_WAIT};
	struct vmm_observe_counter counter;
	struct seen seen = {0};

	(void)state;
	make_stream(&f, true, false);
	vmm_observe_emit(f.observe, &event, NULL);
	assert_int_equal(event.sequence, 0);
	assert_int_equal(f.now, 0); /* the clock was not read */
	vmm_observe_counter(f.observe, VIDMM_EVENT_WAIT, &counter);
	assert_int_equal(counter.count, 1);

	assert_true(vmm_observe_subscribe(f.observe, VMM_OBSERVE_ALL, see, &seen));
	vmm_observe_emit(f.observe, &event, NULL);
	assert_int_equal(seen.last.sequence, 1);
	assert_int_equal(seen.last.time_ns, 10);
	vmm_observe_destroy(f.observe);
}

static void time_is_taken_only_for_events_that_are_stamped(void **state)
{
	struct fixture f;
	struct seen seen = {0};

	(void)state;
	make_stream(&f, true, false);
	uint64_t began = vmm_observe_begin(f.observe, VIDMM_EVENT_DOOR);
	assert_int_equal(vmm_observe_elapsed(f.observe, began), 0);
	assert_int_equal(f.now, 0); /* the clock was not read */
	assert_int_not_equal(
		vmm_observe_subscribe(f.observe, vmm_observe_bit(VIDMM_EVENT_DOOR), see, &seen), 0);
	assert_int_equal(vmm_observe_begin(f.observe, VIDMM_EVENT_WAIT), VMM_OBSERVE_UNTIMED);
	/* the subscription came after the begin */
	assert_int_equal(vmm_observe_elapsed(f.observe, began), 0);
	began = vmm_observe_begin(f.observe, VIDMM_EVENT_DOOR);
	assert_int_equal(vmm_observe_elapsed(f.observe, began), 10);
	vmm_observe_destroy(f.observe);
	make_stream(&f, false, false); /* without threads all events are stamped */
	began = vmm_observe_begin(f.observe, VIDMM_EVENT_DOOR);
	f.now += 10;
	assert_int_equal(vmm_observe_elapsed(f.observe, began), 10);
	vmm_observe_destroy(f.observe);
}

static void subscribers_get_the_types_in_their_mask(void **state)
{
	struct fixture f;
	struct seen locks = {0}, all = {0}, none = {0};

	(void)state;
	for (unsigned threads = 0; threads < 2; threads++) {
		uint64_t mask =
			vmm_observe_bit(VIDMM_EVENT_LOCK) | vmm_observe_bit(VIDMM_EVENT_UNLOCK);
		uint32_t id;

		locks = all = none = (struct seen){0};
		make_stream(&f, threads, false);
		id = vmm_observe_subscribe(f.observe, mask, see, &locks);
		assert_true(id);
		assert_true(vmm_observe_subscribe(f.observe, VMM_OBSERVE_ALL, see, &all));
		assert_true(vmm_observe_subscribe(f.observe, 0, see, &none));
		vmm_event(f.observe, VIDMM_EVENT_LOCK, 3, 77, 0, 1, 2, 3, 4);
		vmm_event(f.observe, VIDMM_EVENT_FATAL, 0, 0, 0, 0x10E, 0, 0, 0);
		vmm_event(f.observe, VIDMM_EVENT_UNLOCK, 3, 77, 0, 0, 0, 0, 0);
		assert_int_equal(locks.count, 2);
		assert_int_equal(all.count, 3);
		assert_int_equal(none.count, 0);
		assert_int_equal(locks.last.type, VIDMM_EVENT_UNLOCK);
		assert_int_equal(locks.last.object, 77);
		assert_int_equal(locks.last.process, 3);

		vmm_observe_unsubscribe(f.observe, id);
		vmm_event(f.observe, VIDMM_EVENT_LOCK, 3, 77, 0, 1, 2, 3, 4);
		assert_int_equal(locks.count, 2);
		assert_int_equal(all.count, 4);
		vmm_observe_destroy(f.observe);
	}
}

static void with_all_subscriptions_in_use_no_id_is_given_and_ids_are_not_reused(void **state)
{
	struct fixture f;
	struct seen seen = {0};
	uint32_t ids[VMM_OBSERVE_SUBSCRIBERS_MAX], again;

	(void)state;
	make_stream(&f, false, false);
	for (unsigned i = 0; i < VMM_OBSERVE_SUBSCRIBERS_MAX; i++) {
		ids[i] = vmm_observe_subscribe(f.observe, VMM_OBSERVE_ALL, see, &seen);
		assert_true(ids[i]);
	}
	assert_int_equal(vmm_observe_subscribe(f.observe, VMM_OBSERVE_ALL, see, &seen), 0);
	vmm_event(f.observe, VIDMM_EVENT_SPLIT, 0, 0, 0, 0, 0, 0, 0);
	assert_int_equal(seen.count, VMM_OBSERVE_SUBSCRIBERS_MAX);

	vmm_observe_unsubscribe(f.observe, ids[17]);
	again = vmm_observe_subscribe(f.observe, VMM_OBSERVE_ALL, see, &seen);
	assert_true(again);
	for (unsigned i = 0; i < VMM_OBSERVE_SUBSCRIBERS_MAX; i++)
		assert_int_not_equal(again, ids[i]);
	vmm_observe_unsubscribe(f.observe, 0); /* the id of a subscription that failed */
	vmm_observe_destroy(f.observe);
}

static void a_finding_carries_its_rule_and_the_values(void **state)
{
	struct fixture f;
	struct seen seen = {0};

	(void)state;
	make_stream(&f, false, false);
	assert_true(
		vmm_observe_subscribe(f.observe, vmm_observe_bit(VIDMM_EVENT_FINDING), see, &seen));
	vmm_finding(f.observe, "LOCK-07", 2, 0x84500001, "ReadOnly with WriteOnly, flags %#x", 3u);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.last.type, VIDMM_EVENT_FINDING);
	assert_int_equal(seen.last.process, 2);
	assert_int_equal(seen.last.object, 0x84500001);
	assert_string_equal(seen.text, "LOCK-07: ReadOnly with WriteOnly, flags 0x3");
	vmm_observe_destroy(f.observe);
}

static void a_reason_carries_its_status(void **state)
{
	struct fixture f;
	struct seen seen = {0};

	(void)state;
	make_stream(&f, false, false);
	assert_true(
		vmm_observe_subscribe(f.observe, vmm_observe_bit(VIDMM_EVENT_REASON), see, &seen));
	vmm_reason(f.observe, VMM_NO_VIDEO_MEMORY, 1, 9, "%d of %d candidates pinned", 3, 5);
	assert_int_equal(seen.last.arg[0], 0xC01E0100);
	assert_string_equal(seen.text, "3 of 5 candidates pinned");
	vmm_observe_destroy(f.observe);
}

/* A refusal and the plain call with the same arguments must emit the same event and text. */
static void assert_same_event(const struct seen *plain, const struct seen *refused)
{
	assert_int_equal(plain->count, 1);
	assert_int_equal(refused->count, 1);
	assert_int_equal(refused->last.type, plain->last.type);
	assert_int_equal(refused->last.reason, plain->last.reason);
	assert_int_equal(refused->last.process, plain->last.process);
	assert_int_equal(refused->last.object, plain->last.object);
	assert_memory_equal(refused->last.arg, plain->last.arg, sizeof(plain->last.arg));
	assert_string_equal(refused->text, plain->text);
}

static void a_refusal_with_a_rule_emits_a_finding_and_returns_its_status(void **state)
{
	struct fixture f;
	struct seen plain = {0}, refused = {0};
	uint32_t id;

	(void)state;
	make_stream(&f, false, false);
	id = vmm_observe_subscribe(f.observe, VMM_OBSERVE_ALL, see, &plain);
	assert_true(id);
	vmm_finding(f.observe, "LOCK-07", 2, 0x84500001, "flags %#x of %s", 3u, "lock");
	vmm_observe_unsubscribe(f.observe, id);
	assert_true(vmm_observe_subscribe(f.observe, VMM_OBSERVE_ALL, see, &refused));
	assert_int_equal(vmm_refuse_rule(f.observe, VMM_ACCESS_DENIED, "LOCK-07", 2, 0x84500001,
					 "flags %#x of %s", 3u, "lock"),
			 VMM_ACCESS_DENIED);
	assert_same_event(&plain, &refused);
	assert_string_equal(refused.text, "LOCK-07: flags 0x3 of lock");
	vmm_observe_destroy(f.observe);
}

static void a_refusal_with_a_reason_emits_it_and_returns_its_status(void **state)
{
	struct fixture f;
	struct seen plain = {0}, refused = {0};
	uint32_t id;

	(void)state;
	make_stream(&f, false, false);
	id = vmm_observe_subscribe(f.observe, VMM_OBSERVE_ALL, see, &plain);
	assert_true(id);
	vmm_reason(f.observe, VMM_NOT_SUPPORTED, 1, 9, "%s is not built", "scanout");
	vmm_observe_unsubscribe(f.observe, id);
	assert_true(vmm_observe_subscribe(f.observe, VMM_OBSERVE_ALL, see, &refused));
	assert_int_equal(
		vmm_refuse_reason(f.observe, VMM_NOT_SUPPORTED, 1, 9, "%s is not built", "scanout"),
		VMM_NOT_SUPPORTED);
	assert_same_event(&plain, &refused);
	assert_int_equal(refused.last.arg[0], (uint32_t)VMM_NOT_SUPPORTED);
	vmm_observe_destroy(f.observe);
}

static void a_long_text_is_truncated_with_a_mark(void **state)
{
	struct fixture f;
	struct seen seen = {0};
	char name[2 * VMM_OBSERVE_TEXT_BYTES];
	/* The length left for the name in a text of exactly the maximum length, then one more. */
	size_t fits = VMM_OBSERVE_TEXT_BYTES - sizeof("PAG-05: ");

	(void)state;
	memset(name, 'n', sizeof(name));
	make_stream(&f, false, false);
	assert_true(vmm_observe_subscribe(f.observe, VMM_OBSERVE_ALL, see, &seen));
	vmm_finding(f.observe, "PAG-05", 0, 0, "%.*s", (int)fits, name);
	assert_int_equal(strlen(seen.text), VMM_OBSERVE_TEXT_BYTES - 1);
	assert_int_equal(seen.text[VMM_OBSERVE_TEXT_BYTES - 2], 'n');
	vmm_finding(f.observe, "PAG-05", 0, 0, "%.*s", (int)fits + 1, name);
	assert_int_equal(strlen(seen.text), VMM_OBSERVE_TEXT_BYTES - 1);
	assert_string_equal(seen.text + VMM_OBSERVE_TEXT_BYTES - 4, "...");
	assert_memory_equal(seen.text, "PAG-05: nnn", 11);
	vmm_reason(f.observe, VMM_NO_MEMORY, 0, 0, "%.*s", (int)sizeof(name), name);
	assert_string_equal(seen.text + VMM_OBSERVE_TEXT_BYTES - 4, "...");
	vmm_observe_destroy(f.observe);
}

/* The hash after one event that differs from a fixed one in one place. */
static uint64_t hash_of_variant(unsigned variant)
{
	struct fixture f;
	struct vidmm_event event = {.type = VIDMM_EVENT_LOCK, .arg = {1, 2, 3, 4}};
	uint64_t hash;

	make_stream(&f, false, true);
	f.now = 10;
	switch (variant) {
	case 1:
		event.type = VIDMM_EVENT_UNLOCK;
		break;
	case 2:
		event.reason = 1;
		break;
	case 3:
		event.process = 1;
		break;
	case 4:
		event.object = 1;
		break;
	case 5:
	case 6:
	case 7:
	case 8:
		event.arg[variant - 5] ^= (uint64_t)1 << 63;
		break;
	case 9:
		event.arg[0] = 2;
		event.arg[1] = 1;
		break;
	case 10:
		event.arg[0] = 3;
		event.arg[1] = 4;
		event.arg[2] = 1;
		event.arg[3] = 2;
		break;
	case 11:
		f.now++;
		break;
	case 12:
		vmm_observe_emit(f.observe, &event, NULL);
		f.now += 10;
		break;
	}
	vmm_observe_emit(f.observe, &event, NULL);
	hash = vmm_observe_hash(f.observe);
	vmm_observe_destroy(f.observe);
	return hash;
}

static void the_hash_depends_on_every_field_and_the_order(void **state)
{
	uint64_t hashes[13];

	(void)state;
	for (unsigned i = 0; i < VMM_ARRAY_LENGTH(hashes); i++) {
		hashes[i] = hash_of_variant(i);
		assert_true(hashes[i] == hash_of_variant(i));
		for (unsigned j = 0; j < i; j++)
			assert_true(hashes[i] != hashes[j]);
	}
	/* The same number for every compiler, sanitizer and byte order: golden streams depend on
	 * it. */
	assert_true(hashes[0] == UINT64_C(0x931B9E9F91C20CFA));
}

static uint64_t hash_of_text(const char *text)
{
	struct fixture f;
	uint64_t hash;

	make_stream(&f, false, true);
	vmm_reason(f.observe, VMM_NO_MEMORY, 0, 0, "%s", text);
	hash = vmm_observe_hash(f.observe);
	vmm_observe_destroy(f.observe);
	return hash;
}

static void the_hash_depends_on_the_text(void **state)
{
	static const char *const texts[] = {
		"", "a", "b", "aa", "12345678", "12345679", "123456781", "1234567812345678"};

	(void)state;
	for (unsigned i = 0; i < VMM_ARRAY_LENGTH(texts); i++)
		for (unsigned j = 0; j < i; j++)
			assert_true(hash_of_text(texts[i]) != hash_of_text(texts[j]));
}

static void creation_without_memory_fails_cleanly(void **state)
{
	struct fixture f;
	struct vmm_observe_config config = {.virtual_ns = &f.now};
	struct vmm_observe *untouched = (void *)&f;
	struct vmm_observe_ring *ring = (void *)&f;

	(void)state;
	for (uint32_t n = 1; n <= 2; n++) {
		vmm_calloc_fail_after(n);
		assert_int_equal(vmm_observe_create(&config, &untouched), VMM_NO_MEMORY);
		assert_ptr_equal(untouched, &f);
	}
	make_stream(&f, false, false);
	for (uint32_t n = 1; n <= 2; n++) {
		vmm_calloc_fail_after(n);
		assert_int_equal(vmm_observe_ring_create(f.observe, VMM_OBSERVE_ALL, 8, &ring),
				 VMM_NO_MEMORY);
		assert_ptr_equal(ring, &f);
	}
	vmm_calloc_fail_after(0);
	/* no partially created ring is subscribed */
	vmm_event(f.observe, VIDMM_EVENT_WAIT, 0, 0, 0, 0, 0, 0, 0);
	vmm_observe_destroy(f.observe);
	vmm_observe_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters_hold_the_count_and_four_sums_of_each_type),
		cmocka_unit_test(every_event_is_stamped_without_threads),
		cmocka_unit_test(with_threads_an_unwanted_event_is_only_counted),
		cmocka_unit_test(time_is_taken_only_for_events_that_are_stamped),
		cmocka_unit_test(subscribers_get_the_types_in_their_mask),
		cmocka_unit_test(
			with_all_subscriptions_in_use_no_id_is_given_and_ids_are_not_reused),
		cmocka_unit_test(a_finding_carries_its_rule_and_the_values),
		cmocka_unit_test(a_reason_carries_its_status),
		cmocka_unit_test(a_refusal_with_a_rule_emits_a_finding_and_returns_its_status),
		cmocka_unit_test(a_refusal_with_a_reason_emits_it_and_returns_its_status),
		cmocka_unit_test(a_long_text_is_truncated_with_a_mark),
		cmocka_unit_test(the_hash_depends_on_every_field_and_the_order),
		cmocka_unit_test(the_hash_depends_on_the_text),
		cmocka_unit_test(creation_without_memory_fails_cleanly),
	};

	return cmocka_run_group_tests_name("observe", tests, NULL, NULL);
}
