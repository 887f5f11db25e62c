/* SPDX-License-Identifier: MIT */
/* The queue of candidates by value (src/policy/queue.h, Q-350), against a sorted array. */
#include "support/test.h"

#include "policy/queue.h"

#define NODES 300u
#define STEPS 20000u

static uint32_t draw(uint64_t *seed, uint32_t below)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*seed >> 33) % below;
}

/* Those in the queue, in order. */
struct model {
	struct vmm_policy_node *node[NODES];
	uint32_t count;
};

static void model_remove(struct model *model, const struct vmm_policy_node *node)
{
	uint32_t i = 0;

	while (model->node[i] != node)
		i++;
	model->count--;
	for (; i < model->count; i++)
		model->node[i] = model->node[i + 1];
}

static void model_insert(struct model *model, struct vmm_policy_node *node)
{
	uint32_t i = model->count++;

	for (; i && vmm_policy_before(node, model->node[i - 1]); i--)
		model->node[i] = model->node[i - 1];
	model->node[i] = node;
}

static void compare(const struct model *model, const struct vmm_policy_queue *queue)
{
	const struct vmm_policy_node *node = vmm_policy_first(queue);

	assert_int_equal(vmm_policy_queue_check(queue), model->count);
	for (uint32_t i = 0; i < model->count; i++, node = vmm_policy_next(node))
		assert_ptr_equal(node, model->node[i]);
	assert_null(node);
}

static void q_350_a_queue_is_in_order_of_values_and_then_of_use(void **state)
{
	static struct vmm_policy_node nodes[NODES];
	static const uint32_t ranges[] = {1, 5, 1000000};
	uint64_t seed = 1, order = 0;

	(void)state;
	for (uint32_t r = 0; r < 3; r++) {
		struct vmm_policy_queue queue = {NULL};
		struct model model = {.count = 0};
		bool queued[NODES] = {false};

		for (uint32_t step = 0; step < STEPS; step++) {
			uint32_t i = draw(&seed, NODES);

			if (queued[i]) {
				vmm_policy_remove(&queue, &nodes[i]);
				model_remove(&model, &nodes[i]);
			} else {
				nodes[i].value = draw(&seed, ranges[r]);
				nodes[i].order = ++order;
				vmm_policy_insert(&queue, &nodes[i]);
				model_insert(&model, &nodes[i]);
			}
			queued[i] = !queued[i];
			if (step % 97 == 0)
				compare(&model, &queue);
		}
		compare(&model, &queue);
	}
}

static uint32_t depth(const struct vmm_policy_node *node)
{
	uint32_t below = 0;

	for (uint32_t i = 0; node && i < 2; i++) {
		uint32_t side = depth(node->child[i]);

		below = side > below ? side : below;
	}
	return node ? below + 1 : 0;
}

/* Inserted in order, as least recently used ones are: the worst case of an unbalanced tree. */
static void q_350_a_queue_of_100000_is_shallow(void **state)
{
	const uint32_t count = 100000;
	struct vmm_policy_node *nodes = test_calloc(count, sizeof(*nodes));
	struct vmm_policy_queue queue = {NULL};

	(void)state;
	assert_non_null(nodes);
	for (uint32_t i = 0; i < count; i++) {
		nodes[i].value = nodes[i].order = i + 1;
		vmm_policy_insert(&queue, &nodes[i]);
	}
	assert_true(depth(queue.root) < 80); /* about 2 * ln n = 23 in the mean, 40 at most seen */
	for (uint32_t i = 0; i < count; i++) {
		struct vmm_policy_node *first = vmm_policy_first(&queue);

		assert_ptr_equal(first, &nodes[i]);
		vmm_policy_remove(&queue, first);
	}
	assert_null(queue.root);
	test_free(nodes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(q_350_a_queue_is_in_order_of_values_and_then_of_use),
		cmocka_unit_test(q_350_a_queue_of_100000_is_shallow),
	};

	return cmocka_run_group_tests_name("policy_queue", tests, NULL, NULL);
}
