/* SPDX-License-Identifier: MIT */
/*
 * os: threads, time, waiting and memory. All modules above reach the operating system through this
 * file.
 *
 * One interface has two back ends. vmm_os_create chooses one for the world:
 *
 *   linux  real threads, futexes, CLOCK_MONOTONIC.
 *   sim    every thread is a coroutine of the one calling thread and time is virtual. The next
 *          runnable coroutine is drawn from a seed: same seed, same interleaving, same event
 *          stream. When no coroutine can run and no timer is pending, the world is deadlocked:
 *          the report names each blocked thread and what it waits for.
 *
 * The thread that calls vmm_os_create becomes the world's first thread ("main"). On sim all calls
 * must come from that one system thread. On linux any thread may call: foreign threads are adopted
 * on first use. Lock ranks are checked per thread: taking a lock whose rank is not greater than
 * every rank already held asserts.
 */
#ifndef VMM_OS_OS_H
#define VMM_OS_OS_H

#include <stdatomic.h>
#include "base/base.h"

struct vmm_os;
struct vmm_os_thread;

enum vmm_os_kind { VMM_OS_LINUX, VMM_OS_SIM };

struct vmm_os_config {
	enum vmm_os_kind kind;
	uint64_t seed; /* sim: seed of the interleaving; 0 is valid */
	/*
	 * sim: chance in 1/1024 that vmm_os_yield_point, a mutex release or a wake switches to
	 * another runnable coroutine. 0: switch only when the running one blocks (fastest, one
	 * fixed order).
	 */
	uint32_t switch_per_1024;
	/*
	 * sim: called once when the world is deadlocked, on the main thread. The text names each
	 * blocked thread, what it waits for and since when. NULL: the text is written to stderr and
	 * the process aborts.
	 *
	 * When the function returns, the world is dead: only main continues, so that a test can
	 * report and end. Main's waits that would block fail with VMM_UNSUCCESSFUL, and its sleeps
	 * only advance the clock. A mutex that main locks is taken from the thread that will never
	 * release it. Joins return at once. vmm_os_destroy then drops the other threads and makes
	 * no leak checks.
	 */
	void (*deadlock)(void *context, const char *report);
	void *deadlock_context;
};

vmm_status vmm_os_create(const struct vmm_os_config *config, struct vmm_os **os) VMM_MUST_CHECK;
/*
 * Ends a world. All threads must have ended and been joined; all memory objects and views must have
 * been released. Leaks are reported on stderr by name and assert.
 */
void vmm_os_destroy(struct vmm_os *os);
enum vmm_os_kind vmm_os_kind(const struct vmm_os *os);
/* Sim: true after a deadlock was reported; only main runs then (vmm_os_config.deadlock). */
bool vmm_os_dead(const struct vmm_os *os);

/*
 * Returns the world of the calling thread. In a thread of a world this is that world; in a thread
 * that created worlds, the one created last; in others NULL until it is set. Code that gets no `os`
 * argument (the kernel services of `nt`) finds its world by it. A function that enters a world from
 * a foreign thread sets it and restores the previous one at its end.
 */
struct vmm_os *vmm_os_current(void);
struct vmm_os *vmm_os_set_current(struct vmm_os *os); /* returns the previous one */
/* One pointer for the module that builds on this world (`nt`); NULL at first. */
void vmm_os_attach(struct vmm_os *os, void *object);
void *vmm_os_attached(const struct vmm_os *os);

/*
 * ---- the calling thread ----
 *
 * Each call into a miniport and each kernel service asks for its thread and its world, and a
 * function call would cost more than the answer. So the parts of struct vmm_os and struct
 * vmm_os_thread that other modules read are declared here; each is the first member.
 */
struct vmm_os_front {
	uint64_t id;    /* constant; never 0 and never reused, unlike the address */
	void *attached; /* vmm_os_attach */
};
#define VMM_OS_FRONT(os) ((struct vmm_os_front *)(os))
#define VMM_OS_SLOTS     10u
/*
 * A thread of a world. The slots are words of the thread alone, 0 in a new thread: 0 to 2 belong to
 * `nt` (IRQL and bookkeeping), 3 to `port`, 4 to `object`, 5 to `kmt`, 6 to `sync`, 7 and 8
 * to `nt` again, 9 to `port` again.
 */
struct vmm_os_own {
	uint64_t slot[VMM_OS_SLOTS];
	/* The thread's hazard pointers, see below: of `object` and `sync`, and of `port`. */
	_Atomic uint64_t hazard, gate;
};
/* What the calling system thread knows: `own` is its thread in the world of `id`, the last used. */
struct vmm_os_here {
	struct vmm_os_front *current; /* vmm_os_current */
	uint64_t id;                  /* 0: none */
	struct vmm_os_own *own;
};
extern _Thread_local struct vmm_os_here vmm_os_here __attribute__((tls_model("initial-exec")));
/* Returns the calling thread in the world; adopts a foreign thread. */
#define VMM_OS_OWN(os) \
	(vmm_likely(vmm_os_here.id == VMM_OS_FRONT(os)->id) ? vmm_os_here.own : vmm_os_find_own(os))
struct vmm_os_own *vmm_os_find_own(struct vmm_os *os);

/* ---- faults of the processor ---- */

enum vmm_os_fault_kind {
	VMM_OS_FAULT_ACCESS,
	VMM_OS_FAULT_DIVIDE, /* of an integer by zero */
	VMM_OS_FAULT_ARITHMETIC,
	VMM_OS_FAULT_INSTRUCTION
};
struct vmm_os_fault {
	enum vmm_os_fault_kind kind;
	void *address;     /* that was accessed or executed */
	void *instruction; /* NULL: unknown on this machine */
	bool is_write;     /* false: a read, or unknown */
};
/*
 * From now on FUNCTION is called for each fault of this process, in a signal handler on the thread
 * that caused it. If it returns, the fault has the effect that it had before. All calls of the
 * process name the same function. A call costs one system call.
 */
void vmm_os_catch_faults(void (*function)(const struct vmm_os_fault *fault));
/* Returns how many mutexes the calling thread holds, which is a thread of a world. */
uint32_t vmm_os_held_count(void);

/* ---- time: ns since the world began; sim: virtual, advances only when all threads wait ---- */
uint64_t vmm_os_now_ns(struct vmm_os *os);
/* Returns the word that holds the virtual time of a sim world; NULL on linux. */
const uint64_t *vmm_os_virtual_time(const struct vmm_os *os);
#define VMM_OS_FOREVER UINT64_MAX
/*
 * Returns the time of day in units of 100 ns since 1601; the system's clock may be set. Sim:
 * virtual time since the world began, as if that were 1601.
 */
uint64_t vmm_os_system_time(struct vmm_os *os);
/*
 * Blocks until the given time. On sim, other threads run meanwhile in the order of their timers.
 * When no other thread is runnable and no earlier timer exists, the call only advances the clock
 * (no switch, a few ns).
 */
void vmm_os_sleep_until(struct vmm_os *os, uint64_t when_ns);
/*
 * A point at which sim may switch to another thread (see switch_per_1024); does nothing on linux.
 * The caller holds no vmm_os_mutex.
 */
void vmm_os_yield_point(struct vmm_os *os);
/*
 * Lets all other threads of the world run until each one waits, sleeps or has ended. Linux: adopted
 * threads are not counted. Linux gives up on threads that keep running once the other threads have
 * used 1 s of processor time or 10 s have passed.
 */
void vmm_os_settle(struct vmm_os *os);
/*
 * For polling loops: gives the processor to another thread once. Sim: settles, because the other
 * threads would never run otherwise.
 */
void vmm_os_yield(struct vmm_os *os);
/*
 * For spinning before a wait: returns whether threads of this world may run at the same time.
 * vmm_os_pause is the processor's hint between two polls.
 */
bool vmm_os_is_parallel(const struct vmm_os *os);
static inline void vmm_os_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb");
#endif
}
/* Deterministic per world on sim (from the seed), random on linux. */
uint64_t vmm_os_random(struct vmm_os *os);

/* ---- threads ---- */
typedef void vmm_os_thread_fn(void *arg);
vmm_status vmm_os_thread_create(struct vmm_os *os, const char *name, vmm_os_thread_fn *fn,
				void *arg, struct vmm_os_thread **thread) VMM_MUST_CHECK;
void vmm_os_thread_join(struct vmm_os_thread *thread); /* waits for its end, then frees it */
struct vmm_os_thread *vmm_os_thread_self(struct vmm_os *os);
const char *vmm_os_thread_name(const struct vmm_os_thread *thread);
/*
 * Starts a watchdog thread of this process (linux only). While it runs, `word` holds its thread id,
 * which is not 0. VMM_OS_WATCHDOG_GONE is set in the word as soon as the process has ended, in
 * whatever way, or the watchdog was stopped. The kernel sets it (robust futex) before any other
 * process can learn of the end, so the word may lie in memory shared with other processes.
 *
 * The thread also calls `notify(context)`, with no lock held, at least once after each
 * vmm_os_watchdog_notify, which does not wait.
 */
#define VMM_OS_WATCHDOG_GONE 0x40000000u
struct vmm_os_watchdog;
vmm_status vmm_os_watchdog_start(struct vmm_os *os, _Atomic uint32_t *word,
				 void (*notify)(void *context), void *context,
				 struct vmm_os_watchdog **watchdog) VMM_MUST_CHECK;
void vmm_os_watchdog_notify(struct vmm_os_watchdog *watchdog);
void vmm_os_watchdog_stop(struct vmm_os_watchdog *watchdog);
/*
 * Linux: wakes all threads that sleep on the word by a futex, in every process that maps its
 * memory.
 */
void vmm_os_wake_shared(_Atomic uint32_t *word);
/* Returns a slot of any thread of the world, for values that the thread does not write now. */
uint64_t *vmm_os_thread_slot(struct vmm_os_thread *thread, unsigned index);
/*
 * A hazard pointer (vmm_os_own.hazard, .gate) is a word per thread, which other threads read. It
 * holds the object (or handle) that the thread is using now; 0: none. vmm_os_hazard_is_held returns
 * whether any thread's `hazard` has the value, vmm_os_gate_holders how many threads' `gate` has it.
 *
 * vmm_os_hazard_publish stores a value and returns the previous one. The publishing thread then
 * checks whether the object may still be used. A thread that ends an object first changes what that
 * check reads, and then asks whether the value is held. At least one of the two sees the other
 * (Dekker pattern). Ends are rare, so the ending side pays for both barriers with membarrier(2),
 * which is a full barrier in every running thread (asymmetric barrier). Without that system call,
 * publishing is a locked exchange.
 *
 * vmm_os_hazard_clear stores 0. If the thread then reads what the ending side has changed before,
 * at least one of the two sees the other, as after vmm_os_hazard_publish.
 */
bool vmm_os_hazard_is_held(struct vmm_os *os, uint64_t value);
uint32_t vmm_os_gate_holders(struct vmm_os *os, uint64_t value);
extern _Atomic bool vmm_os_has_membarrier; /* constant once a world exists */
static inline uint64_t vmm_os_hazard_publish(_Atomic uint64_t *hazard, uint64_t value)
{
	if (vmm_unlikely(!atomic_load_explicit(&vmm_os_has_membarrier, memory_order_relaxed)))
		return atomic_exchange(hazard, value);
	uint64_t before = atomic_load_explicit(hazard, memory_order_relaxed);
	atomic_store_explicit(hazard, value, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	return before;
}
static inline void vmm_os_hazard_clear(_Atomic uint64_t *hazard)
{
	if (vmm_unlikely(!atomic_load_explicit(&vmm_os_has_membarrier, memory_order_relaxed)))
		atomic_exchange(hazard, 0);
	else
		atomic_store_explicit(hazard, 0, memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
}

/*
 * ---- waiting: the only primitive, a futex ----
 *
 * Sleeps while *word == expected, until woken or until deadline_ns (absolute; VMM_OS_FOREVER:
 * none). Returns VMM_OK when woken or when the word differed; spurious wakes are possible, so
 * callers check again. Returns VMM_TIMEOUT at the deadline, and VMM_UNSUCCESSFUL after a reported
 * deadlock on sim. `why` (a static string) and `detail` appear in deadlock reports: "fence of
 * node", 17. NULL marks an idle service thread, which deadlock reports leave out.
 */
vmm_status vmm_os_wait(struct vmm_os *os, _Atomic uint32_t *word, uint32_t expected,
		       uint64_t deadline_ns, const char *why, uint64_t detail);
void vmm_os_wake(struct vmm_os *os, _Atomic uint32_t *word, uint32_t count); /* UINT32_MAX: all */

/* ---- mutex with rank; uncontended: one locked instruction to lock, none to unlock, no syscall */
struct vmm_os_mutex {
	_Atomic uint32_t state; /* 0 free, 1 held; sim: 2 held with waiters */
	uint32_t rank;
	struct vmm_os *os;
	_Atomic(struct vmm_os_thread *) owner; /* for asserts and deadlock reports */
	/*
	 * Linux: the number of threads that sleep for this mutex or for others with its hash. Not
	 * in the mutex, because once that is unlocked another thread may free it. Sim: NULL.
	 */
	_Atomic uint32_t *sleepers;
	const char *name;
};
void vmm_os_mutex_init(struct vmm_os_mutex *mutex, struct vmm_os *os, uint32_t rank,
		       const char *name);
void vmm_os_mutex_finish(struct vmm_os_mutex *mutex); /* asserts that it is free */
void vmm_os_mutex_lock(struct vmm_os_mutex *mutex);
bool vmm_os_mutex_trylock(struct vmm_os_mutex *mutex); /* no rank check: cannot deadlock */
void vmm_os_mutex_unlock(struct vmm_os_mutex *mutex);
/*
 * Unlocks the mutex, then wakes one thread that waits for `word` (NULL: none), so that the woken
 * thread finds the mutex free. Only the address of the word is used, so the word may already have
 * been freed. On sim the wake comes first, with no switch between the two steps.
 */
void vmm_os_mutex_unlock_and_wake(struct vmm_os_mutex *mutex, _Atomic uint32_t *word);
/*
 * Asserts that the calling thread could take the mutex now (rank check), without taking it. For a
 * mutex that is never taken and only represents a rank.
 */
void vmm_os_mutex_check_rank(const struct vmm_os_mutex *mutex);
/* True if the calling thread holds MUTEX. */
bool vmm_os_mutex_held(const struct vmm_os_mutex *mutex);
/*
 * First statement of each function that needs MUTEX: asserts that the calling thread holds it.
 * In release builds it was 130 of the 4740 instructions of a creation with its destruction, which
 * made that pair up to 9 % slower.
 */
#define vmm_assert_held(mutex) vmm_assert_debug(vmm_os_mutex_held(mutex))

/*
 * ---- memory objects: memory with one permanent mapping that can be mapped at other addresses too
 * ----
 *
 * The content is zero at first. Both back ends use real memory (memfd; huge pages are advised from
 * 2 MiB on).
 */
struct vmm_os_memory_record; /* record for the leak report of vmm_os_destroy */
struct vmm_os_memory {
	struct vmm_os *os;
	struct vmm_os_memory_record *record;
	char *base; /* permanent read-write mapping of the whole object ("kernel address") */
	uint64_t size_bytes; /* page multiple */
	int fd;
	uint64_t at; /* where it begins in the file */
};
vmm_status vmm_os_memory_create(struct vmm_os *os, const char *name, uint64_t size_bytes,
				struct vmm_os_memory *memory) VMM_MUST_CHECK;
/*
 * Opens the memory behind `fd`, which stays the caller's and may be closed afterwards. The file
 * must not shrink. Its content stays. Returns VMM_INVALID_HANDLE if `fd` is no descriptor;
 * VMM_INVALID_PARAMETER if size_bytes is not a multiple of the page size, or the file is not a
 * readable and writable regular file of at least that size.
 */
vmm_status vmm_os_memory_open(struct vmm_os *os, int fd, uint64_t size_bytes,
			      struct vmm_os_memory *memory) VMM_MUST_CHECK;
/*
 * A pool is a file whose parts are memory objects, so all of them together need one descriptor. It
 * costs no memory by itself. *size_bytes: its size wanted, and then its size; it is smaller if this
 * process may not have files as large. Closed with vmm_os_descriptor_close, after its objects.
 */
vmm_status vmm_os_pool_create(const char *name, uint64_t *size_bytes, int *pool) VMM_MUST_CHECK;
/*
 * Makes the part of the pool from `at` on a memory object, which reads as zero. No other object is
 * there.
 */
vmm_status vmm_os_memory_create_in(struct vmm_os *os, const char *name, int pool, uint64_t at,
				   uint64_t size_bytes,
				   struct vmm_os_memory *memory) VMM_MUST_CHECK;
/*
 * Like vmm_os_memory_open, for a descriptor from an untrusted process. Returns
 * VMM_INVALID_PARAMETER also unless it is a memfd sealed against shrinking, so that accesses of
 * this process never fault. The object counts as shareable (vmm_os_memory_set_shareable).
 */
vmm_status vmm_os_memory_open_sealed(struct vmm_os *os, int fd, uint64_t size_bytes,
				     struct vmm_os_memory *memory) VMM_MUST_CHECK;
/*
 * Declares that every viewer may see the whole object. Viewers may then be given its descriptor
 * (see client objects below).
 */
void vmm_os_memory_set_shareable(const struct vmm_os_memory *memory);
/*
 * Declares that OWNER alone, an owner of client objects, may see the object. Only views of that
 * owner may then be of it. 0: no owner.
 */
void vmm_os_memory_set_owner(const struct vmm_os_memory *memory, uint64_t owner);
void vmm_os_memory_destroy(struct vmm_os_memory *memory);
/*
 * Announces that the range is about to be used. Where that is cheaper, pages are made present in
 * large steps before they are touched. A hint that changes no content. The caller serializes expect
 * and discard of one object.
 */
void vmm_os_memory_expect(const struct vmm_os_memory *memory, uint64_t offset, uint64_t length);
/* Gives the pages of the page-aligned range back to the system. They read as zero afterwards. */
void vmm_os_memory_discard(const struct vmm_os_memory *memory, uint64_t offset, uint64_t length);

#define VMM_OS_HUGE_PAGE ((uint64_t)2 << 20)
/* ---- private pages of this process, VMM_OS_HUGE_PAGE bytes at once: zero at first ---- */
char *vmm_os_pages_create(void);     /* small pages, allocated when touched; NULL: no memory */
void vmm_os_pages_join(char *pages); /* a hint: makes them one huge page; content stays */
void vmm_os_pages_destroy(char *pages);

/*
 * ---- viewers: CPU mappings in the address space of an out-of-process client ----
 *
 * A viewer carries out views in another process (docs/adr/0001-real-processes.md). Its functions
 * never wait for that process unless stated, so they may be called under core locks. Addresses are
 * those of that process: numbers that this process must not dereference. `fd` is an object that
 * contains only what this viewer may see. The viewer duplicates it if it has to outlive the call.
 */
/*
 * ---- guarded memory: whole pages, before a page that cannot be accessed ----
 *
 * vmm_os_guarded_create returns zeroed memory; NULL: none is left. vmm_os_guarded_seal makes it
 * inaccessible and drops its content; false: it stays accessible.
 */
char *vmm_os_guarded_create(uint64_t size_bytes);
bool vmm_os_guarded_seal(char *memory, uint64_t size_bytes);
void vmm_os_guarded_destroy(char *memory, uint64_t size_bytes);

struct vmm_os_viewer;
struct vmm_lock_word;
struct vmm_os_viewer_ops {
	/* Reserves an inaccessible, page-aligned range. May return VMM_NO_MEMORY. */
	vmm_status (*reserve)(struct vmm_os_viewer *viewer, uint64_t size_bytes, char **address);
	/*
	 * Replaces the mapping of the range in one step. Wakes threads that sleep because the range
	 * was frozen.
	 */
	vmm_status (*map)(struct vmm_os_viewer *viewer, char *address, uint64_t length, int fd,
			  uint64_t offset, bool writable);
	void (*unmap)(struct vmm_os_viewer *viewer, char *address, uint64_t length);
	void (*release)(struct vmm_os_viewer *viewer, char *address, uint64_t size_bytes);
	/*
	 * From return until the next map or thaw, no store through the range takes effect. May
	 * return VMM_NOT_SUPPORTED.
	 */
	vmm_status (*freeze)(struct vmm_os_viewer *viewer, char *address, uint64_t length);
	void (*thaw)(struct vmm_os_viewer *viewer, char *address, uint64_t length);
	/*
	 * Makes the viewer's own memory at that range, with its content, part of an object that
	 * both processes have. *fd becomes the caller's; the range begins at *offset. The range
	 * keeps its address, and no store of the viewer is lost. This is the only operation that
	 * waits for that process: call it with no core lock held.
	 *
	 * VMM_INVALID_PARAMETER: part of the range is not memory that the process can read and
	 * write. VMM_NOT_SUPPORTED: it cannot be shared. VMM_NO_MEMORY. VMM_DEVICE_REMOVED: the
	 * process has ended.
	 */
	vmm_status (*adopt)(struct vmm_os_viewer *viewer, char *address, uint64_t length, int *fd,
			    uint64_t *offset);
	/*
	 * Client's words (base/lock_word.h). take_word returns a free word for the handle, NULL if
	 * there is none. The last three functions may be called only if take_word is not NULL.
	 * `distrust`: the process wrote a value there that it never should; it is disconnected
	 * soon.
	 */
	struct vmm_lock_word *(*take_word)(struct vmm_os_viewer *viewer, uint32_t handle);
	void (*give_word_back)(struct vmm_os_viewer *viewer, struct vmm_lock_word *word);
	uint64_t (*instructed)(struct vmm_os_viewer *viewer); /* number of view instructions sent */
	void (*distrust)(struct vmm_os_viewer *viewer, const char *why);
};
struct vmm_os_viewer {
	const struct vmm_os_viewer_ops *ops;
	_Atomic uint64_t owner; /* owner number of its client objects; 0: not assigned yet */
};
/* Returns the viewer's number as an owner of client objects. It is unique and never reused. */
uint64_t vmm_os_viewer_owner(struct vmm_os_viewer *viewer);

/*
 * ---- client objects: ranges of a memory object that one out-of-process client alone may map ----
 *
 * A client object is a separate memory object for one owner. Ranges of it are mapped over the same
 * ranges of another memory object's permanent mapping. Accesses by that address, or by what was
 * derived from it (MDLs, bus addresses), reach the client object. It is sealed against changes of
 * its size. Its owner may store there at any time, whether or not it covers the range. What it does
 * not cover is memory that no other process uses.
 *
 * An owner has one client object for each memory object, so what it places there needs no further
 * descriptor. An unused range stays covered for its owner, so that nothing has to be zeroed when
 * the owner uses it again. If another owner covers it meanwhile, the pages below are retained if
 * content does not matter there (vmm_os_client_object_cover with `fresh` NULL). At most as many
 * pages are retained as the memory object has.
 *
 * The caller ensures that the range is not in use while an object is mapped over it or removed. The
 * caller serializes all these functions, and maps for viewers, of one memory object.
 */
/*
 * Makes that owner's client object, if there is none. After that a cover for that owner needs no
 * descriptor. VMM_NO_MEMORY: no memory or no descriptor.
 */
vmm_status vmm_os_client_object_prepare(const struct vmm_os_memory *memory,
					uint64_t owner) VMM_MUST_CHECK;
/*
 * Covers the whole range with that owner's client object and counts it as used. Parts that the
 * object covers already keep their content; the rest reads as zero. `fresh`: set if all of it is
 * new. NULL: the rest may also have what that owner had there before. Returns VMM_NO_MEMORY also
 * when descriptors or mappings have run out.
 */
vmm_status vmm_os_client_object_cover(const struct vmm_os_memory *memory, uint64_t offset,
				      uint64_t length, uint64_t owner, bool *fresh) VMM_MUST_CHECK;
/*
 * Like vmm_os_client_object_cover, but keeps the present content of the range: it is copied into
 * the client object, and the pages under it are discarded. No client object of another owner is in
 * the range, and no thread writes to it meanwhile.
 */
vmm_status vmm_os_client_object_cover_with_content(const struct vmm_os_memory *memory,
						   uint64_t offset, uint64_t length,
						   uint64_t owner) VMM_MUST_CHECK;
/*
 * Counts the range as no longer used. With `may_remove`, uncovers parts of it that have become
 * unused and are surplus (vmm_os_client_object_is_surplus).
 */
void vmm_os_client_object_release(const struct vmm_os_memory *memory, uint64_t offset,
				  uint64_t length, bool may_remove);
/*
 * Returns whether a part of the range is surplus: its owner has gone, or too many ranges of the
 * memory object are covered.
 */
bool vmm_os_client_object_is_surplus(const struct vmm_os_memory *memory, uint64_t offset,
				     uint64_t length);
/*
 * Returns whether client objects of that owner cover the whole range; owner 0: whether no client
 * object covers any of it. If the memory object has no client objects at all: whether OWNER is the
 * owner of the whole object (vmm_os_memory_set_owner; 0: none).
 */
bool vmm_os_client_object_is_owned_by(const struct vmm_os_memory *memory, uint64_t offset,
				      uint64_t length, uint64_t owner);
/*
 * Like vmm_os_client_object_is_owned_by for the first part of the range: returns the number of
 * bytes from `offset` on for which the answer is the same, and the answer in *is.
 */
uint64_t vmm_os_client_object_owner_run(const struct vmm_os_memory *memory, uint64_t offset,
					uint64_t length, uint64_t owner, bool *is);
/*
 * Uncovers the range: the memory object's own pages are visible again. VMM_NO_MEMORY: the kernel
 * has no memory for the change of mappings, and parts of the range are covered as before.
 */
vmm_status vmm_os_client_object_uncover(const struct vmm_os_memory *memory, uint64_t offset,
					uint64_t length) VMM_MUST_CHECK;
/* Ends an owner. Its unused ranges are uncovered now, the others when they are no longer used. */
void vmm_os_client_object_end_owner(const struct vmm_os_memory *memory, uint64_t owner);

/*
 * ---- CPU views (CPU mappings): an address range that never moves, behind which memory is
 * exchanged ----
 */
struct vmm_os_view {
	struct vmm_os *os;
	struct vmm_os_viewer *viewer; /* NULL: in this process */
	char *address; /* NULL: not reserved; with a viewer, an address in its process */
	uint64_t size_bytes;
	bool frozen;
};
/* Reserves address space only; an access before a map faults. */
vmm_status vmm_os_view_reserve(struct vmm_os *os, uint64_t size_bytes,
			       struct vmm_os_view *view) VMM_MUST_CHECK;
/*
 * Like vmm_os_view_reserve, in the address space of that viewer's process; NULL: in this process.
 */
vmm_status vmm_os_view_reserve_for(struct vmm_os *os, struct vmm_os_viewer *viewer,
				   uint64_t size_bytes, struct vmm_os_view *view) VMM_MUST_CHECK;
/*
 * Maps memory[memory_offset, +length) at view[view_offset, +length) and atomically replaces what
 * was there. Another thread that reads or writes the range meanwhile uses the old or the new memory
 * and never faults. A viewer is given the client object that covers the range, or the memory object
 * itself if it is shareable or that viewer's own. If neither applies, the call asserts.
 */
vmm_status vmm_os_view_map(struct vmm_os_view *view, uint64_t view_offset,
			   const struct vmm_os_memory *memory, uint64_t memory_offset,
			   uint64_t length) VMM_MUST_CHECK;
/*
 * Like vmm_os_view_map, read-only: the view of a whole object, which is never frozen. Once a viewer
 * has such a view, no process can get a new writable mapping of the object from its descriptor,
 * unless the object is offered (vmm_os_memory_offer).
 */
vmm_status vmm_os_view_map_read_only(struct vmm_os_view *view,
				     const struct vmm_os_memory *memory) VMM_MUST_CHECK;
/*
 * Returns in *fd a read-only descriptor of a shareable object, from which no writable one can be
 * made; the caller closes it. The object is sealed as by vmm_os_view_map_read_only.
 */
vmm_status vmm_os_memory_read_only(const struct vmm_os_memory *memory, int *fd) VMM_MUST_CHECK;
/*
 * Offer: every process that gets a read-only view of the whole object may also get a writable
 * descriptor (vmm_os_memory_writable), until the offer is withdrawn. After that, holders of a
 * writable descriptor keep what they have mapped, and no one else gets one.
 */
void vmm_os_memory_offer(const struct vmm_os_memory *memory);
void vmm_os_memory_withdraw(const struct vmm_os_memory *memory);
/*
 * Returns a writable descriptor, which the caller closes. VMM_NOT_SUPPORTED: the object is not
 * offered.
 */
vmm_status vmm_os_memory_writable(const struct vmm_os_memory *memory, int *fd) VMM_MUST_CHECK;
void vmm_os_view_unmap(struct vmm_os_view *view); /* back to reserved and inaccessible */
void vmm_os_view_release(struct vmm_os_view *view);
/*
 * Freezes the view: from return until the next vmm_os_view_map of the range (or thaw), a store by
 * any thread through the view blocks in the kernel. Content can so be copied without losing a store
 * (PAG-16). Reads proceed. Returns VMM_NOT_SUPPORTED where the kernel has no userfaultfd write
 * protection. On sim a store does not block; the next vmm_os_view_map repeats it in the new memory.
 */
vmm_status vmm_os_view_freeze(struct vmm_os_view *view) VMM_MUST_CHECK;
void vmm_os_view_thaw(struct vmm_os_view *view);

/* ---- bulk copy: non-temporal above the cache size, memcpy below ---- */
void vmm_os_copy(void *destination, const void *source, size_t length);
/* length: multiple of 4 bytes */
void vmm_os_fill_u32(void *destination, uint32_t pattern, size_t length);

/* ---- the CPU's caches ---- */
/*
 * Writes back and invalidates every cache line of the range, in all caches of the machine; complete
 * when it returns. Returns the number of lines, or 0 if the processor has no instruction for it and
 * nothing was done. The range must be mapped.
 */
uint64_t vmm_os_cache_flush(const struct vmm_os *os, const void *address, uint64_t length);

/* ---- events of clients: eventfds, by their descriptors ---- */
/*
 * Duplicates the event's descriptor. VMM_INVALID_HANDLE: the number is not a descriptor of an
 * eventfd.
 */
vmm_status vmm_os_event_open(uint64_t handle, int *event) VMM_MUST_CHECK;
/*
 * Creates an event, which the caller closes: a descriptor of at least 3, closed on exec.
 * VMM_NO_MEMORY: no descriptors are left.
 */
vmm_status vmm_os_event_create(int *event) VMM_MUST_CHECK;
/* adds 1; never blocks: an eventfd at its maximum is set already */
void vmm_os_event_set(int event);
void vmm_os_event_close(int event);

/*
 * ---- tokens: descriptors that represent an object of the library, passed on and closed like any
 * other ----
 */
struct vmm_os_token {
	int fd;                 /* the library's own */
	uint64_t device, inode; /* common to all its handles */
};
/* `name` is what /proc shows. */
vmm_status vmm_os_token_create(const char *name, struct vmm_os_token *token) VMM_MUST_CHECK;
void vmm_os_token_destroy(struct vmm_os_token *token);
/* Opens a new handle, which the caller closes: a descriptor of at least 3, closed on exec. */
vmm_status vmm_os_token_open_handle(const struct vmm_os_token *token,
				    uint64_t *handle) VMM_MUST_CHECK;
/* Returns whether a handle of the token is open in any process. */
bool vmm_os_token_is_open(const struct vmm_os_token *token);
/*
 * Identifies the token that a descriptor number refers to, without a new descriptor.
 * VMM_INVALID_HANDLE: the number cannot be a token's handle.
 */
vmm_status vmm_os_token_identify(uint64_t handle, struct vmm_os_token *token) VMM_MUST_CHECK;

/* Closes a descriptor that a viewer returned (adopt). */
void vmm_os_descriptor_close(int fd);

/*
 * ---- inaccessible ranges that explain themselves ----
 *
 * An access of such a range still ends the process, but `text` and the offset are written to
 * stderr before. A handler of SIGSEGV is installed for that, which passes each signal on to the
 * action that it replaced. Up to 64 ranges in a process; more are not explained. `text` stays valid
 * until the range is removed.
 */
void vmm_os_trap_add(const void *address, uint64_t size_bytes, const char *text);
void vmm_os_trap_remove(const void *address); /* the range that was added with this address */

/*
 * ---- files below one folder; the same on both back ends ----
 *
 * Only regular files. No path leads outside the folder, whatever it contains: such a path is
 * VMM_OS_FILE_OUTSIDE.
 */
enum { VMM_OS_PATH_BYTES = 1024 };
enum { VMM_OS_FILE_READ = 1, VMM_OS_FILE_WRITE = 2, VMM_OS_FILE_CREATE = 4 };
enum vmm_os_file_result {
	VMM_OS_FILE_OK,
	VMM_OS_FILE_NOT_FOUND,
	VMM_OS_FILE_FOLDER_NOT_FOUND,
	VMM_OS_FILE_EXISTS,
	VMM_OS_FILE_NOT_REGULAR,
	VMM_OS_FILE_OUTSIDE,
	VMM_OS_FILE_DENIED,
	VMM_OS_FILE_NAME_TOO_LONG,
	VMM_OS_FILE_NO_KERNEL, /* the kernel has no openat2 (before Linux 5.6) */
	VMM_OS_FILE_FAILED,
};
struct vmm_os_file {
	int fd;
	uint64_t device, inode; /* equal for equal files */
};
struct vmm_os_file_size {
	uint64_t bytes, allocated_bytes;
	uint32_t links;
};
/* vmm_os_descriptor_close closes the folder. VMM_OBJECT_NAME_NOT_FOUND: it cannot be opened. */
vmm_status vmm_os_folder_open(const char *path, int *folder) VMM_MUST_CHECK;
/* `path` is relative, with slashes. VMM_OS_FILE_CREATE: the file must not exist. */
enum vmm_os_file_result vmm_os_file_open(int folder, const char *path, unsigned how,
					 struct vmm_os_file *file) VMM_MUST_CHECK;
void vmm_os_file_close(struct vmm_os_file *file);
/* Reads up to the end of the file. Returns false if the kernel reports an error. */
bool vmm_os_file_read(const struct vmm_os_file *file, void *buffer, size_t length, uint64_t offset,
		      size_t *done) VMM_MUST_CHECK;
/* Returns false if not everything was written; *done is what was. */
bool vmm_os_file_write(const struct vmm_os_file *file, const void *buffer, size_t length,
		       uint64_t offset, size_t *done) VMM_MUST_CHECK;
bool vmm_os_file_size(const struct vmm_os_file *file, struct vmm_os_file_size *size) VMM_MUST_CHECK;
bool vmm_os_file_resize(const struct vmm_os_file *file, uint64_t size_bytes) VMM_MUST_CHECK;

/*
 * Returns the address of a symbol that the library which contains `near` exports, or one that it
 * loaded. NULL: there is none.
 */
void *vmm_os_symbol(const void *near, const char *name);

/* ---- memory of callers ---- */
/*
 * Returns whether every page of the range can be read and written. The check does not change
 * content; it makes all pages present. Returns false also for NULL and for ranges that are not
 * whole pages.
 */
bool vmm_os_probe_writable(const void *address, uint64_t length);

#endif
