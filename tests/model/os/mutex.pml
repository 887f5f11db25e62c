/* SPDX-License-Identifier: MIT */
/*
 * The mutex of src/os between threads of the system. Unlocking stores the state and then reads the
 * number of sleepers, with plain instructions. A thread that is about to sleep changes the number
 * and then reads the state, after an asymmetric barrier. check_spin.py checks all interleavings: one
 * thread at a time holds the mutex, and none sleeps while it is free (an invalid end state).
 *
 * A store that unlocks stays in the thread's store buffer, which empties at any later time, at the
 * thread's next locked instruction, and at a barrier.
 *
 * Three mistakes that the check must find:
 * NO_BARRIER   a thread sleeps without a barrier
 * COUNT_LATE   a thread reads the state before it changes the number of sleepers
 * LOOK_FIRST   unlocking reads the number of sleepers before it stores the state
 */
#define THREADS 3
#ifndef ROUNDS
#define ROUNDS 2
#endif

bit state, buffered[THREADS], asleep[THREADS];
byte sleepers, holders;

inline drain(i) { if :: buffered[i] -> state = 0; buffered[i] = 0 :: else fi }
inline barrier() { atomic { drain(0); drain(1); drain(2) } }

active proctype processor()
{
end:	do
	:: atomic { buffered[0] -> state = 0; buffered[0] = 0 }
	:: atomic { buffered[1] -> state = 0; buffered[1] = 0 }
	:: atomic { buffered[2] -> state = 0; buffered[2] = 0 }
	od
}

/* A compare-and-swap of the state. */
inline try(i)
{
	atomic {
		drain(i);
		taken = !state;
		state = 1
	}
}

/* os_linux_wait.c: the queue is entered and the state compared under the lock of the bucket */
inline wait(i)
{
	atomic {
		if
		:: state -> asleep[i] = 1
		:: else
		fi
	}
	!asleep[i]
}

inline wake(i)
{
	atomic {
		drain(i);
		if
		:: asleep[0] -> asleep[0] = 0
		:: !asleep[0] && asleep[1] -> asleep[1] = 0
		:: !asleep[0] && !asleep[1] && asleep[2] -> asleep[2] = 0
		:: else
		fi
	}
}

/* os_linux.c: wait_for_mutex */
inline lock(i)
{
	try(i);
	if
	:: !taken ->
#ifdef COUNT_LATE
		atomic { drain(i); if :: state -> asleep[i] = 1 :: else fi };
		atomic { drain(i); sleepers++ };
		barrier();
		!asleep[i];
#else
		atomic { drain(i); sleepers++ };
#ifndef NO_BARRIER
		barrier();
#endif
#endif
		try(i);
		do
		:: taken -> break
		:: !taken -> wait(i); try(i)
		od;
		sleepers--
	:: else
	fi
}

/* os_mutex.c: unlock_linux */
inline unlock(i)
{
#ifdef LOOK_FIRST
	some = sleepers > 0;
	buffered[i] = 1;
#else
	buffered[i] = 1;
	some = sleepers > 0;
#endif
	if
	:: some -> wake(i)
	:: else
	fi
}

proctype thread(byte i)
{
	bit taken, some;
	byte round;

	do
	:: round < ROUNDS ->
		lock(i);
		holders++;
		assert(holders == 1);
		holders--;
		unlock(i);
		round++
	:: round == ROUNDS -> break
	od
}

init { atomic { run thread(0); run thread(1); run thread(2) } }
