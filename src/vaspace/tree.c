/* SPDX-License-Identifier: MIT */
/*
 * A B+tree of the pieces of an address space, by address. Its nodes have 16 elements, so it is five
 * levels high with 100,000 pieces, and an operation reads a few cache lines of each level. A lookup
 * near the one before begins at the same leaf.
 *
 * Each element has a bound for the largest hole below it (struct vmm_va_node), which leads a search
 * for a free place past the parts that are full.
 */
#include "vaspace/vaspace_private.h"

#include <string.h>

enum { MERGE = VMM_VA_FANOUT * 3 / 4 }; /* two neighbors of together so many elements are one */

/* ---- one node ---- */

/* Returns the index of the first element that ends above the address; the count if none does. */
static uint32_t slot_of(const struct vmm_va_node *node, uint64_t address)
{
	uint32_t slot = 0;

	for (uint32_t step = VMM_VA_FANOUT / 2; step; step /= 2)
		if (slot + step <= node->count && node->end[slot + step - 1] <= address)
			slot += step;
	return slot + (slot < node->count && node->end[slot] <= address);
}

/* The free space between the element and the one before in the node. */
static uint64_t space_before(const struct vmm_va_node *node, uint32_t slot)
{
	return slot ? node->first[slot] - node->end[slot - 1] : 0;
}

static void raise_hole(struct vmm_va_node *node, uint32_t slot, uint64_t bytes)
{
	node->hole[slot] = vmm_max_u64(node->hole[slot], bytes);
}

/* After a change of an element's addresses, or of the element before it. */
static void measure(struct vmm_va_node *node, uint32_t slot)
{
	if (slot >= node->count)
		return;
	if (node->level)
		raise_hole(node, slot, space_before(node, slot));
	else
		node->hole[slot] = space_before(node, slot);
}

static uint64_t hole_at(const struct vmm_va_node *node, uint32_t slot)
{
	return slot < node->count ? node->hole[slot] : 0;
}

/* The larger of the holes at an element and at the next one. */
static uint64_t larger_hole(const struct vmm_va_node *node, uint32_t slot)
{
	return vmm_max_u64(hole_at(node, slot), hole_at(node, slot + 1));
}

static uint64_t largest_hole(const struct vmm_va_node *node)
{
	uint64_t largest = 0;

	for (uint32_t i = 0; i < node->count; i++)
		largest = vmm_max_u64(largest, node->hole[i]);
	return largest;
}

/* Copies elements within a node or to another one. */
static void move(struct vmm_va_node *to, uint32_t at, const struct vmm_va_node *from,
		 uint32_t first, uint32_t count)
{
	memmove(&to->end[at], &from->end[first], count * sizeof(to->end[0]));
	memmove(&to->first[at], &from->first[first], count * sizeof(to->first[0]));
	memmove(&to->hole[at], &from->hole[first], count * sizeof(to->hole[0]));
	memmove(&to->element[at], &from->element[first], count * sizeof(to->element[0]));
}

struct element {
	uint64_t first, end, hole;
	void *pointer;
};

static struct element element_of(struct vmm_va_node *node)
{
	return (struct element){.first = node->first[0],
				.end = node->end[node->count - 1],
				.hole = largest_hole(node),
				.pointer = node};
}

static void put(struct vmm_va_node *node, uint32_t slot, const struct element *element)
{
	move(node, slot + 1, node, slot, node->count++ - slot);
	node->first[slot] = element->first;
	node->end[slot] = element->end;
	node->hole[slot] = element->hole;
	node->element[slot] = element->pointer;
	measure(node, slot);
	measure(node, slot + 1);
}

static void take(struct vmm_va_node *node, uint32_t slot)
{
	move(node, slot, node, slot + 1, --node->count - slot);
	measure(node, slot);
}

/* ---- the cursor ---- */

/* Returns whether the leaf of the cursor has the first piece that ends above the address. */
static bool is_near(const struct vmm_va_tree *tree, uint64_t address)
{
	const struct vmm_va_node *leaf = tree->leaf;

	return leaf && tree->from <= address && address < leaf->end[leaf->count - 1];
}

/* Returns whether the element has it; the address is near. */
static bool is_at(const struct vmm_va_node *leaf, uint32_t slot, uint64_t address)
{
	return slot < leaf->count && address < leaf->end[slot] &&
	       (!slot || leaf->end[slot - 1] <= address);
}

static struct vmm_va_piece *descend(struct vmm_va_tree *tree, uint64_t address)
{
	struct vmm_va_node *node = tree->root;

	tree->from = 0;
	for (uint32_t level = tree->height; level--;) {
		uint32_t slot = slot_of(node, address);

		if (level && slot && slot == node->count) /* above all pieces */
			slot--;
		if (level && slot)
			tree->from = node->end[slot - 1];
		tree->at[level].node = node;
		tree->at[level].slot = slot;
		if (level)
			node = node->element[slot];
	}
	return tree->at[0].slot < node->count ? node->element[tree->at[0].slot] : NULL;
}

struct vmm_va_piece *vmm_va_tree_seek(struct vmm_va_tree *tree, uint64_t address)
{
	const struct vmm_va_node *leaf = tree->leaf;
	uint32_t slot = tree->at[0].slot;

	if (vmm_likely(is_near(tree, address))) {
		if (!is_at(leaf, slot, address))
			tree->at[0].slot = slot = slot_of(leaf, address);
		return leaf->element[slot];
	}
	if (!tree->root)
		return NULL;
	struct vmm_va_piece *piece = descend(tree, address);
	tree->leaf = tree->at[0].node;
	return piece;
}

/*
 * Tells the nodes above that the node at that level of the cursor has other addresses, or a hole of
 * that size.
 */
static void update_above(struct vmm_va_tree *tree, uint32_t level, uint64_t hole)
{
	for (; level + 1 < tree->height; level++) {
		const struct vmm_va_node *node = tree->at[level].node;
		struct vmm_va_node *above = tree->at[level + 1].node;
		uint32_t slot = tree->at[level + 1].slot;
		uint64_t first = node->first[0], end = node->end[node->count - 1];

		if (above->first[slot] == first && above->end[slot] == end &&
		    above->hole[slot] >= hole)
			return;
		above->first[slot] = first;
		above->end[slot] = end;
		raise_hole(above, slot, hole);
		measure(above, slot);
		measure(above, slot + 1);
		hole = larger_hole(above, slot);
	}
}

/* ---- insertion ---- */

static struct vmm_va_node *new_node(struct vmm_va_tree *tree, uint32_t level)
{
	struct vmm_va_node *node = vmm_va_pool_take_reserved(&tree->nodes);

	node->count = 0;
	node->level = level;
	return node;
}

static void add_root(struct vmm_va_tree *tree)
{
	struct vmm_va_node *old = tree->root, *root = new_node(tree, tree->height);

	vmm_assert(tree->height < VMM_VA_HEIGHT_MAX);
	if (old) {
		const struct element element = element_of(old);

		put(root, 0, &element);
	}
	tree->root = root;
	tree->at[tree->height].node = root;
	tree->at[tree->height++].slot = 0;
}

static void insert_at(struct vmm_va_tree *tree, uint32_t level, const struct element *element);

/*
 * Splits a full node at the cursor and inserts the element. An element after all others gets a new
 * node for itself, so that spaces that grow upwards have full nodes.
 */
static void insert_in_full(struct vmm_va_tree *tree, uint32_t level, const struct element *element)
{
	struct vmm_va_node *node = tree->at[level].node, *right = new_node(tree, level);
	uint32_t slot = tree->at[level].slot;
	uint32_t keep = slot == VMM_VA_FANOUT ? VMM_VA_FANOUT : VMM_VA_FANOUT / 2;

	if (level + 1 == tree->height)
		add_root(tree);
	move(right, 0, node, keep, VMM_VA_FANOUT - keep);
	right->count = VMM_VA_FANOUT - keep;
	node->count = keep;
	if (!level && right->count)
		right->hole[0] = 0;
	if (slot > keep || keep == VMM_VA_FANOUT)
		put(right, slot - keep, element);
	else
		put(node, slot, element);
	update_above(tree, level, largest_hole(node));
	const struct element added = element_of(right);
	tree->at[level + 1].slot++;
	insert_at(tree, level + 1, &added);
	tree->leaf = NULL;
}

static void insert_at(struct vmm_va_tree *tree, uint32_t level, const struct element *element)
{
	struct vmm_va_node *node = tree->at[level].node;
	uint32_t slot = tree->at[level].slot;

	if (vmm_unlikely(node->count == VMM_VA_FANOUT)) {
		insert_in_full(tree, level, element);
		return;
	}
	put(node, slot, element);
	update_above(tree, level, larger_hole(node, slot));
}

vmm_status vmm_va_tree_reserve(struct vmm_va_tree *tree, uint32_t count)
{
	/* An insertion splits at most one node of each level, and adds a root. */
	return vmm_va_pool_reserve(&tree->nodes, count * (tree->height + 1));
}

void vmm_va_tree_insert(struct vmm_va_tree *tree, struct vmm_va_piece *piece)
{
	const struct element element = {
		.first = piece->base, .end = piece->base + piece->size, .pointer = piece};
	const struct vmm_va_piece *next = vmm_va_tree_seek(tree, piece->base);

	vmm_assert(!next || next->base >= element.end);
	if (vmm_unlikely(!tree->root))
		add_root(tree);
	insert_at(tree, 0, &element);
}

/* ---- removal ---- */

/* Moves the elements of the right one of two neighbors to the left one, and gives it back. */
static uint64_t merge(struct vmm_va_tree *tree, struct vmm_va_node *above, uint32_t left)
{
	struct vmm_va_node *to = above->element[left], *from = above->element[left + 1];
	uint64_t hole = vmm_max_u64(above->hole[left], above->hole[left + 1]);
	uint32_t seam = to->count;

	move(to, seam, from, 0, from->count);
	to->count += from->count;
	measure(to, seam);
	above->end[left] = above->end[left + 1];
	take(above, left + 1);
	raise_hole(above, left, hole);
	vmm_va_pool_give(&tree->nodes, from);
	return hole;
}

static bool may_merge(const struct vmm_va_node *above, uint32_t left)
{
	const struct vmm_va_node *a = above->element[left], *b = above->element[left + 1];

	return a->count + b->count <= MERGE;
}

static void drop_root(struct vmm_va_tree *tree)
{
	struct vmm_va_node *root = tree->root;

	tree->root = root->count ? root->element[0] : NULL;
	tree->height--;
	tree->leaf = NULL;
	vmm_va_pool_give(&tree->nodes, root);
}

/* The node at that level of the cursor has lost an element; there is a hole of that size now. */
static void settle(struct vmm_va_tree *tree, uint32_t level, uint64_t hole)
{
	for (;; level++) {
		struct vmm_va_node *node = tree->at[level].node;

		if (level + 1 == tree->height)
			break;
		struct vmm_va_node *above = tree->at[level + 1].node;
		uint32_t slot = tree->at[level + 1].slot;
		if (!node->count) {
			take(above, slot);
			vmm_va_pool_give(&tree->nodes, node);
			hole = hole_at(above, slot);
		} else {
			bool with_next = slot + 1 < above->count && may_merge(above, slot);
			bool with_previous = !with_next && slot && may_merge(above, slot - 1);

			update_above(tree, level, hole);
			if (vmm_likely(!with_next && !with_previous))
				return;
			hole = merge(tree, above, slot - with_previous);
		}
		tree->leaf = NULL;
	}
	while (tree->root && (tree->root->level ? tree->root->count <= 1 : !tree->root->count))
		drop_root(tree);
}

/* The end of the piece before the cursor, where the hole there begins; 0: there is none. */
static uint64_t end_before(const struct vmm_va_tree *tree)
{
	uint32_t slot = tree->at[0].slot;

	return slot ? tree->at[0].node->end[slot - 1] : tree->from;
}

/* Before the piece at the cursor becomes smaller or is removed. */
static void note_hole(struct vmm_va_tree *tree)
{
	tree->full.below = vmm_min_u64(tree->full.below, end_before(tree));
}

/* Moves the cursor to the piece, which most callers have just looked up. */
static void seek_piece(struct vmm_va_tree *tree, const struct vmm_va_piece *piece)
{
	uint32_t slot = tree->at[0].slot;

	if (vmm_likely(tree->leaf && slot < tree->leaf->count &&
		       tree->leaf->element[slot] == piece))
		return;
	const struct vmm_va_piece *found = vmm_va_tree_seek(tree, piece->base);
	vmm_assert(found == piece);
}

void vmm_va_tree_remove(struct vmm_va_tree *tree, const struct vmm_va_piece *piece)
{
	seek_piece(tree, piece);
	struct vmm_va_node *leaf = tree->at[0].node;
	uint32_t slot = tree->at[0].slot;

	note_hole(tree);
	take(leaf, slot);
	settle(tree, 0, hole_at(leaf, slot));
}

void vmm_va_tree_resize(struct vmm_va_tree *tree, const struct vmm_va_piece *piece)
{
	seek_piece(tree, piece);
	struct vmm_va_node *leaf = tree->at[0].node;
	uint32_t slot = tree->at[0].slot;

	note_hole(tree);
	leaf->end[slot] = piece->base + piece->size;
	measure(leaf, slot + 1);
	update_above(tree, 0, larger_hole(leaf, slot));
}

/* ---- free places ---- */

static bool fits(uint64_t from, uint64_t to, const struct vmm_va_request *request, uint64_t *base)
{
	uint64_t start = vmm_max_u64(from, request->minimum);
	uint64_t end = vmm_min_u64(to, request->maximum);

	start = vmm_max_u64(start, request->phase) - request->phase;
	if (vmm_add_overflows(start, request->alignment - 1, &start))
		return false;
	start = (start & ~(request->alignment - 1)) + request->phase;
	if (start > end || end - start < request->size)
		return false;
	*base = start;
	return true;
}

static bool search(struct vmm_va_node *node, const struct vmm_va_request *request, uint64_t *base)
{
	for (uint32_t i = 0; i < node->count; i++) {
		if (vmm_likely(node->hole[i] < request->size))
			continue;
		if (node->end[i] <= request->minimum)
			continue;
		if (i && node->end[i - 1] >= request->maximum)
			return false;
		if (i && fits(node->end[i - 1], node->first[i], request, base))
			return true;
		if (!node->level)
			continue;
		if (search(node->element[i], request, base))
			return true;
		node->hole[i] = vmm_max_u64(space_before(node, i), largest_hole(node->element[i]));
	}
	return false;
}

/* Searches the leaf with the first piece that ends above the minimum. */
static bool search_near(struct vmm_va_tree *tree, const struct vmm_va_request *request,
			uint64_t *base)
{
	if (!vmm_va_tree_seek(tree, request->minimum))
		return false;
	const struct vmm_va_node *leaf = tree->leaf;
	uint32_t slot = tree->at[0].slot;

	for (uint64_t from = end_before(tree); slot < leaf->count; from = leaf->end[slot++])
		if (leaf->first[slot] - from >= request->size &&
		    fits(from, leaf->first[slot], request, base)) {
			tree->at[0].slot = slot; /* where the piece will be inserted */
			return true;
		}
	return false;
}

static bool search_all(struct vmm_va_tree *tree, const struct vmm_va_request *request,
		       uint64_t *base)
{
	struct vmm_va_node *root = tree->root;

	return fits(0, root->first[0], request, base) || search(root, request, base) ||
	       fits(root->end[root->count - 1], UINT64_MAX, request, base);
}

/*
 * A search of the size and minimum that are known continues where the one before ended. Places with
 * a larger alignment are fewer, so what such a search found says nothing about others.
 */
bool vmm_va_tree_hole(struct vmm_va_tree *tree, const struct vmm_va_request *request,
		      uint64_t *base)
{
	struct vmm_va_request above = *request;
	bool known = tree->full.size && request->size >= tree->full.size &&
		     request->minimum >= tree->full.minimum;

	if (!tree->root)
		return fits(0, UINT64_MAX, request, base);
	if (known)
		above.minimum = vmm_max_u64(request->minimum, tree->full.below);
	if (!(known && search_near(tree, &above, base)) && !search_all(tree, &above, base))
		return false;
	if (request->alignment != VMM_PAGE_SIZE)
		return true;
	if (!known) {
		tree->full.minimum = request->minimum;
		tree->full.size = request->size;
		tree->full.below = *base;
	} else if (request->size == tree->full.size && request->minimum <= tree->full.below) {
		tree->full.below = *base;
	}
	return true;
}
