/* SPDX-License-Identifier: MIT */
/*
 * How the steps of a context's queue are taken (src/sched/steps.c): a wait for a fence, a buffer behind it, a signal behind that.
 * Whoever raises the fence ends the wait under the sync lock and tells afterwards, without one: he wakes the worker, or, where
 * it was a signal of a queue (LOOKS), looks himself afterwards. The worker, and whoever completes the buffer, take what can be taken, one
 * at a time. Checked exhaustively by check_spin.py:
 *
 *   SUB-28, MFN-29  the buffer goes only when the wait is satisfied, or given up
 *   MFN-28          the signal is done only when the buffer is complete, and once
 *   MFN-30          nothing is left that could be taken (no wake-up is lost)
 *   TDRS-11         no signal is done that was reached after the context was lost
 *   MFN-33, Q-46    the end of a context (ENDS) comes to its end whether or not the fence is raised, and nobody touches it afterwards
 *
 * ENDS     the context is destroyed meanwhile
 * LOST     its device is lost meanwhile
 * NEVER    nobody raises the fence
 * LOOKS    it is a signal that raises the fence
 * FORGETS_TO_WAKE, LOOKS_FIRST, ENDS_EARLY, LEAVES_FLAG  what must not be done: who tells wakes nobody; who signals looks before he has;
 *          the end looks at the queue alone; who found nothing more lets go before he says so. Each must be found.
 */
#define AT_WAIT   0
#define AT_BUFFER 1
#define AT_SIGNAL 2
#define EMPTY     3

byte at, work, seen_work;
bool state_lock, sync_lock;
bool word, waiters, waiting, wait_done;   /* the fence, and the wait in its heap */
bool listed, begun, popped, over, satisfied;
bool advancing, ending, given_up, lost, freed;
bool released, complete, cancelled, signals;
bool raising, losing, gpu_done;

inline acquire(l) { atomic { !l -> l = 1 } }
inline release(l) { l = 0 }

#define HOPELESS   (lost || given_up)
#define CAN_WAIT   (!begun || popped || (!over && (ending || HOPELESS)))
#define CAN_SIGNAL (complete || HOPELESS)
#define ACTIONABLE \
	((at == AT_WAIT && CAN_WAIT) || at == AT_BUFFER || (at == AT_SIGNAL && CAN_SIGNAL))

/* steps.c: check_wait, with packet.c: begin and withdraw. */
inline take_wait()
{
	if
	:: popped -> satisfied = 1; at = AT_BUFFER
	:: !popped && !begun && !HOPELESS ->
		begun = 1;
		acquire(sync_lock);
		waiters = 1;
		if
		:: word -> waiters = 0; satisfied = 1; at = AT_BUFFER
		:: else -> waiting = 1
		fi;
		release(sync_lock)
	:: !popped && !begun && HOPELESS -> given_up = 1; at = AT_BUFFER
	:: !popped && begun ->
		acquire(sync_lock);
		if
		:: wait_done -> over = 1
		:: else -> waiting = 0; waiters = 0; given_up = 1; at = AT_BUFFER
		fi;
		release(sync_lock)
	fi
}

/* steps.c: advance_context_locked. The state lock is released while a signal is done. */
inline go()
{
	advancing = 1;
	do
	:: at == AT_WAIT && CAN_WAIT -> assert(!freed); take_wait()
	:: at == AT_BUFFER ->
		assert(satisfied || given_up || lost);
		at = AT_SIGNAL;
		released = 1
	:: at == AT_SIGNAL && CAN_SIGNAL ->
		drop = !complete || HOPELESS;
		at = EMPTY;
		release(state_lock);
		if
		:: !drop -> assert(complete && !cancelled && !signals); signals = 1
		:: else
		fi;
		acquire(state_lock)
	:: !ACTIONABLE -> break
	od;
	assert(!freed);
#ifdef LEAVES_FLAG
	release(state_lock);
	acquire(state_lock);
#endif
	advancing = 0
}

/* steps.c: vmm_steps_advance */
inline advance()
{
	acquire(state_lock);
	if
	:: listed -> listed = 0; assert(!freed); popped = 1
	:: else
	fi;
	if
	:: !freed && !advancing && ACTIONABLE -> go()
	:: else
	fi;
	release(state_lock)
}

/* wait.c: raise, deliver, flush; steps.c: on_wait_completed. */
proctype raiser()
{
	bool drop, ended = 0;

#ifdef LOOKS_FIRST
	advance();
#endif
	word = 1;
	if
	:: waiters ->
		acquire(sync_lock);
		if
		:: waiting -> waiting = 0; waiters = 0; wait_done = 1; ended = 1
		:: else
		fi;
		release(sync_lock);
		if
		:: ended ->
			assert(!freed);
			listed = 1;
#if !defined(FORGETS_TO_WAKE) && !defined(LOOKS) && !defined(LOOKS_FIRST)
			work++
#endif
		:: else
		fi
	:: else
	fi;
#ifdef LOOKS
	advance();
#endif
	raising = 0
}

proctype worker()
{
	bool drop;
	byte seen;

	do
	:: seen = work;
		advance();
end_idle:	work != seen
	od
}

/* The buffer, once it is in the queue of what is to be prepared; the DPC that retires it goes on with the steps. */
proctype gpu()
{
	bool drop;

end_waits: released;
	acquire(state_lock);
	cancelled = HOPELESS;
	complete = 1;
	release(state_lock);
	advance();
	gpu_done = 1
}

proctype loser()
{
	bool drop;

	lost = 1;
	advance();
	losing = 0
}

proctype ender()
{
	bool drop, is_empty = 0;

	acquire(state_lock);
	ending = 1;
	release(state_lock);
	do
	:: !is_empty ->
		advance();
		acquire(state_lock);
#ifdef ENDS_EARLY
		is_empty = at == EMPTY;
#else
		is_empty = at == EMPTY && !advancing;
#endif
		if
		:: is_empty -> freed = 1
		:: else
		fi;
		release(state_lock);
		if
		:: !is_empty -> /* it sleeps until something may have changed */
			(ACTIONABLE || listed || advancing || at == EMPTY)
		:: else
		fi
	:: is_empty -> break
	od
}

/* Nothing moves any more. */
proctype checker()
{
	timeout;
	assert(!ACTIONABLE || at == EMPTY);
	assert(!listed);
#ifndef NEVER
	assert(at == EMPTY);
	assert(signals || HOPELESS);
#endif
#ifdef ENDS
	assert(freed);
#endif
}

init
{
	atomic {
#ifndef NEVER
		raising = 1;
		run raiser();
#endif
		run worker();
		run gpu();
#ifdef LOST
		losing = 1;
		run loser();
#endif
#ifdef ENDS
		run ender();
#endif
		run checker()
	}
}
