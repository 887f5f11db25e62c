/* SPDX-License-Identifier: MIT */
/*
 * Waits and signals of src/sync that race. A signal is a compare-and-swap of the value and then a
 * load of the number of waiters, without a lock. A wait increments that number and then reads the
 * value, under the sync lock. check_spin.py checks all interleavings: no wait stays asleep whose
 * values are reached (that would be an invalid end state), and no wait ends before they are.
 *
 * Two fences and three waits: for value 1 of the first fence, for value 2 of it, and for value 2 of
 * the first together with value 1 of the second.
 * REWIND   the first fence is also rewound; without the first wait, to limit the number of states
 * DESTROY  the second fence is destroyed, which cancels the wait in its heap
 * STORE    a GPU stores the second fence's value; its interrupt has fences with waiters read again
 *
 * Three mistakes, each of which loses a wake-up that the check must find:
 * LOOK_FIRST   a wait reads the value before it increments the number of waiters
 * COUNT_AFTER  a signal reads the number of waiters before it stores the value
 * COUNT_LATE   a wait reads the value before it increments the number for the interrupt
 */
#define WAITS 3
#define AT(w, f) (2 * (w) + (f))

byte awaited; /* waiters of both fences, for the interrupt */
byte word[2], waiters[2], want[6], missing[WAITS];
bit inside[6], done[WAITS], cancelled[WAITS], gone, locked, raised;

inline acquire() { atomic { !locked -> locked = 1 } }
inline release() { locked = 0 }

/* wait.c: begin_node */
inline begin_node(w, f)
{
#ifndef COUNT_LATE
	awaited++;
#endif
#ifdef LOOK_FIRST
	seen = word[f];
	waiters[f]++;
#else
	waiters[f]++;
	seen = word[f];
#endif
#ifdef COUNT_LATE
	awaited++;
#endif
	if
	:: seen >= want[AT(w, f)] -> waiters[f]--; awaited--
	:: else -> inside[AT(w, f)] = 1; missing[w]++
	fi
}

inline take_out(w, f)
{
	inside[AT(w, f)] = 0;
	waiters[f]--;
	awaited--;
	missing[w]--
}

/* wait.c: is_satisfied. A wait for several fences reads those again that left their heaps. */
inline look_again(w)
{
	g = 0;
	do
	:: g < 2 && want[AT(w, g)] && !inside[AT(w, g)] -> begin_node(w, g); g++
	:: g < 2 && !(want[AT(w, g)] && !inside[AT(w, g)]) -> g++
	:: g == 2 -> break
	od
}

/* wait.c: vmm_sync_deliver */
inline deliver(f)
{
	acquire();
	value = word[f];
	w = 0;
	do
	:: w < WAITS && inside[AT(w, f)] && want[AT(w, f)] <= value ->
		take_out(w, f);
		if
		:: missing[w] == 0 && w == 2 -> look_again(w)
		:: else
		fi;
		if
		:: missing[w] == 0 -> done[w] = 1
		:: else
		fi;
		w++
	:: w < WAITS && !(inside[AT(w, f)] && want[AT(w, f)] <= value) -> w++
	:: w == WAITS -> break
	od;
	release()
}

/* fence.c: vmm_sync_raise. The first guess of the old value may be any earlier value. */
proctype signal(byte f; byte new)
{
	byte now, value, seen, w, g;
#ifdef COUNT_AFTER
	byte count = waiters[f];
#endif

	now = word[f];
	do
	:: atomic { new > now && word[f] == now -> word[f] = new }; break
	:: atomic { new > now && word[f] != now -> now = word[f] }
	:: new <= now -> goto end
	od;
#ifdef COUNT_AFTER
	if
	:: count -> deliver(f)
	:: else
	fi;
#else
	if
	:: waiters[f] -> deliver(f)
	:: else
	fi;
#endif
end:	skip
}

/* packet.c: vmm_sync_reread */
proctype store(byte f; byte new)
{
	byte value, seen, w, g;

	word[f] = new;
	if
	:: awaited -> deliver(f)
	:: else
	fi
}

proctype rewind()
{
	byte value, seen, w, g;

	word[0] = 1;
	if
	:: waiters[0] -> deliver(0)
	:: else
	fi;
	word[0] = 2; /* raised again */
	if
	:: waiters[0] -> deliver(0)
	:: else
	fi
}

/* opening.c: vmm_sync_end, under the process lock, which the beginning of a wait also takes. */
proctype destroy()
{
	acquire();
	gone = 1;
	if
	:: inside[AT(2, 1)] ->
		take_out(2, 1);
		if
		:: inside[AT(2, 0)] -> take_out(2, 0)
		:: else
		fi;
		cancelled[2] = 1;
		done[2] = 1
	:: else
	fi;
	release()
}

proctype wait(byte me)
{
	byte seen, f;

	acquire();
	if
	:: gone && want[AT(me, 1)] -> cancelled[me] = 1; release(); goto end
	:: else
	fi;
	do
	:: f < 2 && want[AT(me, f)] -> begin_node(me, f); f++
	:: f < 2 && !want[AT(me, f)] -> f++
	:: f == 2 -> break
	od;
	if
	:: missing[me] == 0 -> done[me] = 1
	:: else
	fi;
	release();
	done[me]; /* sleeps until then */
#ifndef REWIND
	assert(cancelled[me] || word[0] >= want[AT(me, 0)]);
	assert(cancelled[me] || word[1] >= want[AT(me, 1)]);
#endif
end:	skip
}

init
{
	atomic {
		want[AT(0, 0)] = 1;
		want[AT(1, 0)] = 2;
		want[AT(2, 0)] = 2;
		want[AT(2, 1)] = 1;
#ifndef REWIND
		run wait(0);
		run signal(0, 1);
#endif
		run wait(1);
		run wait(2);
		run signal(0, 2);
#ifdef STORE
		run store(1, 1);
#else
		run signal(1, 1);
#endif
#ifdef REWIND
		run rewind();
#endif
#ifdef DESTROY
		run destroy();
#endif
	}
}
