/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of the os module: the world, its threads, and the entry points of the two
 * back ends. Common files decide by `kind`. A back end never accesses the other one's part.
 */
#ifndef VMM_OS_OS_INTERNAL_H
#define VMM_OS_OS_INTERNAL_H

#include <pthread.h>
#include "os/os.h"
#include "os/os_context.h"

enum {
	VMM_OS_NAME_BYTES = 32,
	/* locks one thread may hold at once; ranks make more of them a design error */
	VMM_OS_HELD_MAX = 16,
	VMM_OS_WAIT_BUCKETS = 64, /* power of two */
	VMM_OS_IDLE_STACKS = 16,
};

/*
 * How long a thread of the linux back end polls a held mutex before it sleeps, in pauses of the
 * processor. A pause takes 10 to 45 ns, so that is as long as one or two sleeps take with their
 * ends. Sections of a few microseconds are common: with a shorter time threads that submit side by
 * side slept in turns.
 *
 * The time between two looks doubles, up to some microseconds (exponential backoff). Each look
 * takes the mutex's cache line from its holder, and a mutex that changes hands takes the lines of
 * all that it guards along. So a holder that soon locks again had better do so several times before
 * another thread finds the mutex free.
 */
enum { VMM_OS_MUTEX_PAUSES = 2048, VMM_OS_MUTEX_PAUSES_ONCE = 256 };

enum vmm_os_sim_state {
	SIM_RUNNABLE,
	SIM_RUNNING,
	SIM_WAITING,
	SIM_SLEEPING,
	SIM_SETTLING,
	SIM_ENDED
};

struct vmm_os_sim_thread {
	struct vmm_os_context context;
	enum vmm_os_sim_state state;
	vmm_status result;    /* what the wait that ended returns */
	struct vmm_list link; /* in a wait bucket or in the settlers */
	uint32_t heap_index;  /* in the timers, SIM_NO_TIMER if not there */
	uint64_t deadline_ns;
	uint64_t timer_sequence; /* equal deadlines fire in the order they were set */
	const _Atomic uint32_t *word;
	/* for the deadlock report */
	const char *why;
	uint64_t detail;
	uint64_t since_ns;
	const struct vmm_os_mutex *mutex;
	const struct vmm_os_thread *joining;
	_Atomic uint32_t ended;
};

struct vmm_os_linux_thread {
	pthread_t handle;
	struct vmm_list of_system_thread; /* the thread's records in all worlds it uses */
	_Atomic uint32_t ended;
	/* while it waits; guarded by the lock of the bucket */
	const _Atomic uint32_t *word;
	struct vmm_list waiting;
	_Atomic uint32_t woken; /* the futex on which this thread sleeps */
};

struct vmm_os_held {
	struct vmm_os_mutex *mutex;
	uint32_t lowest_rank; /* the thread's before it took the mutex */
};

struct vmm_os_thread {
	/* Used by the thread itself only; other threads read the hazard pointer. */
	struct vmm_os_own own; /* the first member */
	/* constant after creation */
	struct vmm_os *os;
	vmm_os_thread_fn *fn;
	void *arg;
	char name[VMM_OS_NAME_BYTES];
	bool adopted; /* not made by vmm_os_thread_create */
	/* used by the thread itself only */
	uint32_t held_count;
	struct vmm_os_held held[VMM_OS_HELD_MAX];
	uint32_t lowest_rank; /* that a mutex may have now: above all ranks held */
	/* guarded by os->registry_lock */
	struct vmm_list link;
	union {
		struct vmm_os_sim_thread sim;
		struct vmm_os_linux_thread linux_;
	};
};

struct vmm_os_sim {
	struct vmm_os_thread *current;
	struct vmm_os_thread *main;
	uint64_t now_ns;
	uint32_t switch_per_1024;
	uint64_t random; /* state of the generator of interleavings */
	/*
	 * Ring of runnable threads. Its capacity (a power of two) covers all threads, so that a
	 * wake cannot fail.
	 */
	struct vmm_os_thread **runnable;
	uint32_t runnable_head, runnable_count;
	/* binary heap by (deadline, sequence), same capacity */
	struct vmm_os_thread **timers;
	uint32_t timer_count;
	uint64_t timer_sequence;
	uint32_t capacity, thread_count;
	struct vmm_list settlers;
	struct vmm_list watched_views; /* frozen, of this process (os_sim_stores.c) */
	struct vmm_list waiters[VMM_OS_WAIT_BUCKETS];
	struct vmm_os_context idle_stacks[VMM_OS_IDLE_STACKS]; /* of ended threads */
	uint32_t idle_stack_count;
	void (*deadlock)(void *context, const char *report);
	void *deadlock_context;
	char *report; /* not yet delivered by main */
	bool dead;    /* only main still runs */
};

/*
 * A bucket of the hash table of waiters: the threads that wait on words with one hash.
 *
 * The count makes a wake without waiters cheap: no lock and no system call. A waiter adds itself
 * before it compares the word. A waker changes the word before it reads the count. Both access the
 * count by read-modify-write operations, hence at least one sees the other (Dekker pattern).
 */
struct vmm_os_bucket {
	_Atomic uint32_t count;
	char padding[60]; /* keeps two buckets out of one cache line */
	pthread_mutex_t lock;
	struct vmm_list waiters; /* in order of arrival */
};

/* The lock class of vmm_os.registry_lock (docs/locking.md). */
extern struct vmm_lock_class vmm_os_registry_class;

struct vmm_os_linux {
	uint64_t start_ns; /* CLOCK_MONOTONIC when the world began */
	bool parallel;     /* constant after creation */
	/* for settling: created threads that neither wait nor have ended */
	_Atomic uint32_t busy;
	struct vmm_list settlers VMM_GUARDED_BY(vmm_os_registry_class);
	struct vmm_os_bucket bucket[VMM_OS_WAIT_BUCKETS];
	_Atomic uint32_t mutex_sleepers[VMM_OS_WAIT_BUCKETS]; /* by vmm_os_bucket of the state */
};

enum { USERFAULT_UNTRIED = -1, USERFAULT_REFUSED = -2 };

struct vmm_os_memory_record {
	struct vmm_list link;
	uint64_t size_bytes;
	char name[VMM_OS_NAME_BYTES];
	bool shareable;       /* any viewer may be given a descriptor of the object */
	uint64_t owner;       /* this owner's viewer may; 0: none */
	_Atomic bool offered; /* writable descriptors may be handed out, too */
	bool foreign;         /* the client's memfd, which the client has sealed */
	bool pooled;          /* a part of a pool, whose descriptor is not closed with it */
	/* by page: the client object that covers it; NULL: no object was ever mapped */
	struct vmm_os_client_object **over;
	uint8_t *uses;                  /* by page: how often it is in use */
	struct vmm_list client_objects; /* one for each owner */
	uint64_t covered;               /* pages that a client object covers */
	uint64_t edges;                 /* places where the cover changes from page to page */
	uint64_t stale;                 /* pages of client objects that cover nothing */
	bool stale_usable;              /* a range was covered whose content may be old */
	uint64_t chunks;                /* whole huge pages; see os_huge.c */
	uint8_t asked[];                /* units asked for of each huge page */
};

/* How the processor flushes cache lines; line_bytes 0: it cannot. */
struct vmm_os_cache {
	uint32_t line_bytes;
	bool unordered; /* CLFLUSHOPT */
};
struct vmm_os_cache vmm_os_cache_find(void);

struct vmm_os {
	struct vmm_os_front front; /* the first member */
	/* constant after creation */
	struct vmm_os_cache cache;
	enum vmm_os_kind kind;
	_Atomic uint64_t random;
	pthread_mutex_t registry_lock;
	/* guarded by registry_lock */
	struct vmm_list threads;
	struct vmm_list memories;
	int userfault_fd; /* USERFAULT_UNTRIED, USERFAULT_REFUSED or a descriptor */
	/* how many and how much, for the leak check */
	_Atomic uint64_t view_count;
	_Atomic uint64_t view_bytes;
	union {
		struct vmm_os_sim sim;
		struct vmm_os_linux linux_;
	};
};

VMM_LOCK_PAIR(vmm_os_registry_lock, vmm_os_registry_unlock, vmm_os_registry_class, pthread_mutex,
	      struct vmm_os, registry_lock);

static inline struct vmm_os *vmm_os_of_front(struct vmm_os_front *front)
{
	return (struct vmm_os *)front;
}

/* Makes the calling thread the one that vmm_os_here knows. */
static inline void vmm_os_use_thread(struct vmm_os_thread *thread)
{
	vmm_os_here.id = thread->os->front.id;
	vmm_os_here.own = &thread->own;
}

struct vmm_os_thread *vmm_os_linux_adopt(struct vmm_os *os);

static inline struct vmm_os_thread *vmm_os_self(struct vmm_os *os)
{
	return (struct vmm_os_thread *)VMM_OS_OWN(os);
}

static inline uint32_t vmm_os_bucket(const _Atomic uint32_t *word)
{
	return (uint32_t)(((uintptr_t)word >> 2) * 0x9E3779B1u >> 16) & (VMM_OS_WAIT_BUCKETS - 1);
}

/* os_event.c: finds out whether the kernel can set an eventfd without ever blocking */
void vmm_os_event_begin(void);

/* os_fence.c */
void vmm_os_fence_begin(void); /* finds out whether membarrier(2) is available */
void vmm_os_fence_others(void);

void vmm_os_thread_register(struct vmm_os *os, struct vmm_os_thread *thread, const char *name);
void vmm_os_thread_unregister(struct vmm_os_thread *thread);

/*
 * What an uncontended mutex does not call stays out of line: inlined by link-time optimization, it
 * makes each lock and unlock save registers for it.
 */

/* ---- linux ---- */
struct timespec;
long vmm_os_linux_futex(_Atomic uint32_t *word, int operation, uint32_t value,
			const struct timespec *deadline);
struct timespec vmm_os_linux_deadline(const struct vmm_os *os, uint64_t when_ns);
void vmm_os_linux_becomes_idle(const struct vmm_os_thread *thread);
void vmm_os_linux_becomes_busy(const struct vmm_os_thread *thread);
void vmm_os_linux_wait_init(struct vmm_os *os);
void vmm_os_linux_wait_finish(struct vmm_os *os);
void vmm_os_linux_settle(struct vmm_os *os);
vmm_status vmm_os_linux_init(struct vmm_os *os);
void vmm_os_linux_finish(struct vmm_os *os);
uint64_t vmm_os_linux_now(struct vmm_os *os);
void vmm_os_linux_sleep_until(struct vmm_os *os, uint64_t when_ns);
vmm_status vmm_os_linux_wait(struct vmm_os *os, _Atomic uint32_t *word, uint32_t expected,
			     uint64_t deadline_ns);
void vmm_os_linux_wake(struct vmm_os *os, const _Atomic uint32_t *word,
		       uint32_t count) VMM_NOINLINE;
/* Returns whether the mutex was free, and is the caller's now. */
VMM_ALWAYS_INLINE bool vmm_os_linux_mutex_try(struct vmm_os_mutex *mutex)
{
	uint32_t free = 0;

	return atomic_compare_exchange_strong_explicit(&mutex->state, &free, 1,
						       memory_order_acquire, memory_order_relaxed);
}
void vmm_os_linux_mutex_contended(struct vmm_os_mutex *mutex) VMM_COLD;
vmm_status vmm_os_linux_thread_start(struct vmm_os_thread *thread);
void vmm_os_linux_thread_join(struct vmm_os_thread *thread);

/* ---- sim ---- */
#define SIM_NO_TIMER UINT32_MAX
vmm_status vmm_os_sim_init(struct vmm_os *os, const struct vmm_os_config *config);
void vmm_os_sim_finish(struct vmm_os *os);
void vmm_os_sim_sleep_until(struct vmm_os *os, uint64_t when_ns);
void vmm_os_sim_settle(struct vmm_os *os);
vmm_status vmm_os_sim_wait(struct vmm_os *os, _Atomic uint32_t *word, uint64_t deadline_ns,
			   const char *why, uint64_t detail);
/* Wakes waiters of the word. Does not switch: the caller may, once it holds nothing. */
void vmm_os_sim_wake(struct vmm_os_sim *sim, const _Atomic uint32_t *word,
		     uint32_t count) VMM_NOINLINE;
void vmm_os_sim_mutex_contended(struct vmm_os_mutex *mutex) VMM_COLD;
/*
 * Switches with the chance of switch_per_1024. A chance of 0 never switches; callers on fast paths
 * test for it and save the call.
 */
void vmm_os_sim_maybe_switch(struct vmm_os *os) VMM_NOINLINE;
vmm_status vmm_os_sim_thread_start(struct vmm_os_thread *thread);
void vmm_os_sim_thread_join(struct vmm_os_thread *thread);
/* Returns the text of a deadlock, to be freed with vmm_free; NULL when out of memory. */
char *vmm_os_sim_describe(struct vmm_os *os) VMM_MUST_CHECK;
/* Timer heap. The caller sets the thread's deadline_ns before it adds the thread. */
void vmm_os_sim_timer_add(struct vmm_os_sim *sim, struct vmm_os_thread *thread);
void vmm_os_sim_timer_remove(struct vmm_os_sim *sim, struct vmm_os_thread *thread);

/* ---- faults ---- */
/* Installs the handler of faults, unless it is installed. One system call. (os_fault.c) */
void vmm_os_fault_install(void);
/* In the handler: writes the text of the range in which the address is, if it is in one. */
void vmm_os_trap_explain(const void *address);

#endif
