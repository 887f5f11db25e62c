/* SPDX-License-Identifier: MIT */
/*
 * A treap: a search tree by address and a heap by priority, which is a hash of the address. It is
 * balanced in any order of insertion.
 */
#include "serve/view_records.h"

static uint32_t priority_of(uint64_t address)
{
	uint64_t x = address * 0x9E3779B97F4A7C15u;

	x ^= x >> 29;
	return (uint32_t)(x * 0xBF58476D1CE4E5B9u >> 32);
}

/* Splits a tree: addresses below `address` go to *left, the others to *right. */
static void split(struct vmm_view_record *tree, uint64_t address, struct vmm_view_record **left,
		  struct vmm_view_record **right)
{
	while (tree) {
		if (tree->address < address) {
			*left = tree;
			left = &tree->right;
			tree = tree->right;
		} else {
			*right = tree;
			right = &tree->left;
			tree = tree->left;
		}
	}
	*left = *right = NULL;
}

bool vmm_view_records_add(struct vmm_view_record **records, uint64_t address, uint64_t size_bytes,
			  uint32_t node)
{
	struct vmm_view_record *record = vmm_calloc(1, sizeof(*record));

	if (!record)
		return false;
	*record = (struct vmm_view_record){.address = address,
					   .size_bytes = size_bytes,
					   .node = node,
					   .priority = priority_of(address)};
	while (*records && (*records)->priority >= record->priority)
		records = address < (*records)->address ? &(*records)->left : &(*records)->right;
	split(*records, address, &record->left, &record->right);
	*records = record;
	return true;
}

struct vmm_view_record *vmm_view_records_find(struct vmm_view_record *records, uint64_t address)
{
	struct vmm_view_record *below = NULL;

	while (records) {
		if (records->address <= address) {
			below = records;
			records = records->right;
		} else {
			records = records->left;
		}
	}
	return below && address - below->address < below->size_bytes ? below : NULL;
}

void vmm_view_records_remove(struct vmm_view_record **records, struct vmm_view_record *record)
{
	while (*records != record) {
		vmm_assert(*records);
		records = record->address < (*records)->address ? &(*records)->left
								: &(*records)->right;
	}
	struct vmm_view_record *left = record->left, *right = record->right;

	/* merge both subtrees; the higher priority becomes the root */
	while (left && right) {
		if (left->priority >= right->priority) {
			*records = left;
			records = &left->right;
			left = left->right;
		} else {
			*records = right;
			records = &right->left;
			right = right->left;
		}
	}
	*records = left ? left : right;
	vmm_free(record);
}
