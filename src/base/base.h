/* SPDX-License-Identifier: MIT */
/*
 * base: used by every module. Status values, asserts, checked arithmetic, intrusive lists and one C
 * type per address space. Owns no state, takes no lock, calls nothing but libc.
 */
#ifndef VMM_BASE_BASE_H
#define VMM_BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * One status type in all layers: the NTSTATUS values of the DDI contract. Modules below the DDI
 * (os, range, handle) use the same numbers, so no layer translates them. include/wddm defines the
 * STATUS_* spellings for DDI code; these constants have the same values and tests/abi compares
 * them.
 */
typedef int32_t vmm_status;

#define VMM_OK                     ((vmm_status)0x00000000)
#define VMM_ABANDONED              ((vmm_status)0x00000080)
#define VMM_PENDING                ((vmm_status)0x00000103)
#define VMM_TIMEOUT                ((vmm_status)0x00000102)
#define VMM_UNSUCCESSFUL           ((vmm_status)0xC0000001)
#define VMM_INVALID_HANDLE         ((vmm_status)0xC0000008)
#define VMM_INVALID_PARAMETER      ((vmm_status)0xC000000D)
#define VMM_NO_MEMORY              ((vmm_status)0xC0000017)
#define VMM_ACCESS_DENIED          ((vmm_status)0xC0000022)
#define VMM_INSUFFICIENT_RESOURCES ((vmm_status)0xC000009A)
#define VMM_NOT_SUPPORTED          ((vmm_status)0xC00000BB)
#define VMM_OBJECT_NAME_INVALID    ((vmm_status)0xC0000033)
#define VMM_OBJECT_NAME_NOT_FOUND  ((vmm_status)0xC0000034)
#define VMM_OBJECT_NAME_COLLISION  ((vmm_status)0xC0000035)
#define VMM_OBJECT_TYPE_MISMATCH   ((vmm_status)0xC0000024)
#define VMM_BUFFER_TOO_SMALL       ((vmm_status)0xC0000023)
#define VMM_CANCELLED              ((vmm_status)0xC0000120)
#define VMM_DEVICE_REMOVED         ((vmm_status)0xC00002B6)
#define VMM_GPU_EXCEPTION          ((vmm_status)0xC01E0200)
#define VMM_NO_VIDEO_MEMORY        ((vmm_status)0xC01E0100)
#define VMM_ALLOCATION_BUSY        ((vmm_status)0xC01E0102)

static inline bool vmm_ok(vmm_status status)
{
	return status >= 0;
}

#define VMM_MUST_CHECK        __attribute__((warn_unused_result))
#define VMM_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define vmm_prefetch(address) __builtin_prefetch((const void *)(address))
/* Bytes of a cache line of the processors that the layouts are made for. */
#define VMM_CACHE_LINE        64u
#define VMM_COLD              __attribute__((cold, noinline))
#define VMM_NOINLINE          __attribute__((noinline))
/*
 * For the short functions of the fast paths: with link-time optimization, gcc stops inlining others
 * when the program has grown by its limit.
 */
#define VMM_ALWAYS_INLINE     static inline __attribute__((always_inline))
/* For a fast path that calls functions of several files: inlines them all into the function. */
#define VMM_FLATTEN           __attribute__((flatten))
#define VMM_NORETURN          __attribute__((noreturn))
#define vmm_likely(x)         __builtin_expect(!!(x), 1)
#define vmm_unlikely(x)       __builtin_expect(!!(x), 0)

#define VMM_ARRAY_LENGTH(a)                 (sizeof(a) / sizeof((a)[0]))
#define vmm_container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/*
 * Thread-safety annotations, checked by clang (-Wthread-safety), and empty for other compilers. A
 * lock class stands for all locks of one kind. The compiler checks that a lock of the class is
 * held; vmm_assert_held (os/os.h) checks at run time that it is the lock of the right object
 * (docs/locking.md).
 */
#if defined(__clang__)
#define VMM_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define VMM_THREAD_SAFETY(attribute)
#endif
#define VMM_CAPABILITY(name)          VMM_THREAD_SAFETY(capability(name))
#define VMM_GUARDED_BY(lock)          VMM_THREAD_SAFETY(guarded_by(lock))
#define VMM_REQUIRES(...)             VMM_THREAD_SAFETY(requires_capability(__VA_ARGS__))
#define VMM_EXCLUDES(...)             VMM_THREAD_SAFETY(locks_excluded(__VA_ARGS__))
#define VMM_ACQUIRES(...)             VMM_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define VMM_RELEASES(...)             VMM_THREAD_SAFETY(release_capability(__VA_ARGS__))
#define VMM_TRY_ACQUIRES(value, ...)  VMM_THREAD_SAFETY(try_acquire_capability(value, __VA_ARGS__))
#define VMM_ASSERTS_HELD(...)         VMM_THREAD_SAFETY(assert_capability(__VA_ARGS__))
/* On a function whose locking the analysis cannot follow; its comment says why. */
#define VMM_NO_THREAD_SAFETY_ANALYSIS VMM_THREAD_SAFETY(no_thread_safety_analysis)

/* A lock class has no state; the analysis needs an object to name. */
struct VMM_CAPABILITY("lock class") vmm_lock_class {
	char unused;
};
/* The class of a lock that only one file takes. */
#define VMM_STATIC_LOCK_CLASS(name) static struct vmm_lock_class name __attribute__((unused))

/*
 * Defines the functions ACQUIRE and RELEASE, which lock and unlock MUTEX by the functions KIND_lock
 * and KIND_unlock. PARAMETERS, in parentheses, are those of the two functions. For clang they
 * acquire and release the lock class. It does not analyze the bodies: a lock class has no state,
 * the mutex has.
 */
#define VMM_LOCK_FUNCTIONS(acquire, release, parameters, lock_class, kind, mutex) \
	static inline void acquire parameters VMM_ACQUIRES(lock_class)            \
		VMM_NO_THREAD_SAFETY_ANALYSIS                                     \
	{                                                                         \
		kind##_lock(mutex);                                               \
	}                                                                         \
	static inline void release parameters VMM_RELEASES(lock_class)            \
		VMM_NO_THREAD_SAFETY_ANALYSIS                                     \
	{                                                                         \
		kind##_unlock(mutex);                                             \
	}                                                                         \
	struct vmm_lock_class /* takes the semicolon behind the macro */
/*
 * The same for a mutex that is a member of TYPE. This defines vmm_state_lock(adapter) and
 * vmm_state_unlock(adapter):
 *
 *	VMM_LOCK_PAIR(vmm_state_lock, vmm_state_unlock, vmm_state_lock_class,
 *		      vmm_os_mutex, struct vmm_adapter, state_lock);
 */
#define VMM_LOCK_PAIR(acquire, release, lock_class, kind, type, member) \
	VMM_LOCK_FUNCTIONS(acquire, release, (type * object), lock_class, kind, &object->member)

/*
 * Always enabled. A false condition is a bug in vidmm, never a mistake of a client or a miniport:
 * those get findings.
 */
VMM_NORETURN VMM_COLD void vmm_assert_failed(const char *expression, const char *file, int line);
#define vmm_assert(cond) ((cond) ? (void)0 : vmm_assert_failed(#cond, __FILE__, __LINE__))
/*
 * An assert that release builds leave out: for conditions whose check makes an operation of the
 * benchmarks more than 5 % slower. A comment gives the figure.
 */
#ifdef VMM_RELEASE
#define vmm_assert_debug(cond) ((void)sizeof(!(cond)))
#else
#define vmm_assert_debug(cond) vmm_assert(cond)
#endif

/* Page size of segments with Use64KBPages (SEG-11). */
#define VMM_LARGE_PAGE_SIZE ((uint64_t)64 << 10)

/* Host page: the granularity of MDLs, apertures and CPU mappings. */
#define VMM_PAGE_SHIFT 12u
#define VMM_PAGE_SIZE  ((uint64_t)1 << VMM_PAGE_SHIFT)

static inline uint64_t vmm_align_up(uint64_t value, uint64_t alignment)
{
	return (value + alignment - 1) & ~(alignment - 1);
}
static inline uint64_t vmm_align_down(uint64_t value, uint64_t alignment)
{
	return value & ~(alignment - 1);
}
static inline bool vmm_is_pow2(uint64_t value)
{
	return value && !(value & (value - 1));
}
static inline uint64_t vmm_min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}
static inline uint64_t vmm_max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}
static inline uint32_t vmm_min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}
static inline bool vmm_add_overflows(uint64_t a, uint64_t b, uint64_t *sum)
{
	return __builtin_add_overflow(a, b, sum);
}
static inline bool vmm_mul_overflows(uint64_t a, uint64_t b, uint64_t *product)
{
	return __builtin_mul_overflow(a, b, product);
}

/*
 * One type per address space, so that the compiler rejects a system address used as a GPU address.
 */
typedef struct {
	uint64_t value;
} vmm_physaddr; /* host "physical" bus address: BARs and system pages */
typedef struct {
	uint64_t value;
} vmm_gpuaddr; /* address in the GPU's physical space: segment base + offset */
typedef struct {
	uint64_t value;
} vmm_segoff; /* byte offset inside one segment */

/* Intrusive circular doubly linked list; a head and a detached link both point at themselves. */
struct vmm_list {
	struct vmm_list *prev, *next;
};

static inline void vmm_list_init(struct vmm_list *link)
{
	link->prev = link->next = link;
}
static inline bool vmm_list_empty(const struct vmm_list *head)
{
	return head->next == head;
}
static inline void vmm_list_push_back(struct vmm_list *head, struct vmm_list *link)
{
	link->prev = head->prev;
	link->next = head;
	head->prev->next = link;
	head->prev = link;
}
/* The list is circular: the link becomes the last one before the successor of POS. */
static inline void vmm_list_insert_after(struct vmm_list *pos, struct vmm_list *link)
{
	vmm_list_push_back(pos->next, link);
}
static inline void vmm_list_remove(struct vmm_list *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
	link->prev = link->next = link;
}
#define vmm_list_for_each(pos, head) \
	for ((pos) = (head)->next; (pos) != (head); (pos) = (pos)->next)
#define vmm_list_for_each_safe(pos, tmp, head)                           \
	for ((pos) = (head)->next, (tmp) = (pos)->next; (pos) != (head); \
	     (pos) = (tmp), (tmp) = (pos)->next)

/* Allocates zeroed memory, with an overflow check. NULL: no memory. vmm_free(NULL) does nothing. */
void *vmm_calloc(size_t count, size_t size) VMM_MUST_CHECK;
/*
 * The same for one object that begins a cache line: for types with members that are aligned to
 * cache lines.
 */
void *vmm_calloc_lines(size_t size) VMM_MUST_CHECK;
void vmm_free(void *ptr);
/*
 * Copies an array of a caller, which is read once. *copy: NULL for an empty array, else the caller
 * frees it. VMM_INVALID_PARAMETER: array is NULL, or count is above limit.
 */
vmm_status vmm_copy_in(const void *array, uint32_t count, uint32_t limit, size_t element,
		       void **copy) VMM_MUST_CHECK;
/*
 * Defined if a sanitizer checks each heap object. Caches of freed objects then return them to the
 * heap.
 */
#if defined(__SANITIZE_ADDRESS__)
#define VMM_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define VMM_SANITIZED 1
#endif
#endif
/*
 * Test hook: makes the n-th next vmm_calloc of this thread fail once (0 disarms). The rules cover
 * out-of-memory paths (LOCK-32), which tests cannot reach otherwise. base/failure.h has the other
 * kinds of failures.
 */
void vmm_calloc_fail_after(uint32_t n);

#endif
