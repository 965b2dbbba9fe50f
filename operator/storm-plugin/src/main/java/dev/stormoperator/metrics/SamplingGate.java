package dev.stormoperator.metrics;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * Says for one task which calls are looked at: exactly one, at random, in each block of {@code K} consecutive calls.
 *
 * <p>Every call is therefore looked at with probability {@code 1 / K}, so that counting it {@code K} times keeps totals
 * unbiased, and (unlike with independent draws) the number of samples itself has no noise. {@code K} is a power of two
 * and follows the task's rate: 1 (exact) for slow tasks, otherwise just large enough to stay within a budget of samples
 * per second. {@code K} changes only for reasons that do not depend on where in its block a sample
 * falls (rate, number of blocks), hence it does not bias.
 *
 * <p>{@link #pass} belongs to the task's thread; {@link #adapt} to the one thread that writes snapshots. They meet
 * in single words, none of which the hot path reads but the countdown. Users who emit from several threads of one
 * task may lose a decrement now and then: the gate then opens a little later, nothing else.
 */
final class SamplingGate {
    static final int MAX_BLOCK = 4096;

    private static final VarHandle COUNTDOWN;
    private static final VarHandle BLOCK;
    private static final VarHandle WANTED;
    private static final VarHandle DRAWN;
    private static final VarHandle COARSEST;
    private static final int NOTHING_WANTED = 0;
    /** Lowering K needs this much room in the budget, so that a rate near a boundary does not make K swing. */
    private static final double ROOM_TO_LOWER = 0.7;

    static {
        try {
            MethodHandles.Lookup lookup = MethodHandles.lookup();
            COUNTDOWN = lookup.findVarHandle(SamplingGate.class, "countdown", int.class);
            BLOCK = lookup.findVarHandle(SamplingGate.class, "block", int.class);
            WANTED = lookup.findVarHandle(SamplingGate.class, "wanted", int.class);
            DRAWN = lookup.findVarHandle(SamplingGate.class, "drawn", long.class);
            COARSEST = lookup.findVarHandle(SamplingGate.class, "coarsest", int.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    /**
     * How much a task may be looked at.
     *
     * @param exactBelow calls per second up to which every call is looked at
     * @param samplesPerSecond calls per second that are looked at, at most, where there are more than that
     */
    record Budget(int exactBelow, int samplesPerSecond) {
        static final Budget UNLIMITED = new Budget(Integer.MAX_VALUE, Integer.MAX_VALUE);

        Budget {
            if (samplesPerSecond < 1 || exactBelow < samplesPerSecond) {
                throw new IllegalArgumentException("samplesPerSecond is " + samplesPerSecond + " and exactBelow "
                        + exactBelow + ", must be 1 <= samplesPerSecond <= exactBelow");
            }
        }

        /** The K for a rate in calls per second, given the K in force. */
        int blockFor(double callsPerSecond, int inForce) {
            int needed = leastBlock(callsPerSecond);
            return needed >= inForce ? needed : Math.min(inForce, leastBlock(callsPerSecond / ROOM_TO_LOWER));
        }

        private int leastBlock(double callsPerSecond) {
            int block = 1;
            if (callsPerSecond > exactBelow) {
                while (block < callsPerSecond / samplesPerSecond && block < MAX_BLOCK) {
                    block *= 2;
                }
            }
            return block;
        }
    }

    private final Budget budget;
    private final boolean closed;

    private int countdown = 1;
    private int block = 1;
    private int offset;
    private int weight = 1;
    private int random;
    private int wanted = NOTHING_WANTED;
    private int coarsest = 1;
    private int spent;
    private long drawn = 1;

    // These three belong to the snapshot writer.
    private long callsAtLastAdapt;
    private long neverCounted;
    private int blockWhenLastAsked = 1;

    /** Keeps the countdowns of two tasks, each written at every call by another thread, off the same cache line. */
    @SuppressWarnings("unused")
    private long pad0, pad1, pad2, pad3, pad4, pad5, pad6, pad7, pad8, pad9, padA, padB, padC, padD, padE, padF;

    /** @param seed start of the random sequence; any value */
    SamplingGate(Budget budget, int seed) {
        this(budget, seed, false);
    }

    private SamplingGate(Budget budget, int seed, boolean closed) {
        this.budget = budget;
        this.random = seed == 0 ? 0x9E3779B9 : seed;
        this.closed = closed;
    }

    /** A gate that lets nothing through, for tasks of which a look would tell nothing. */
    static SamplingGate closed() {
        SamplingGate gate = new SamplingGate(Budget.UNLIMITED, 1, true);
        gate.countdown = Integer.MAX_VALUE;
        gate.block = MAX_BLOCK;
        gate.coarsest = MAX_BLOCK;
        gate.blockWhenLastAsked = MAX_BLOCK;
        return gate;
    }

    boolean isClosed() {
        return closed;
    }

    /** Whether this call is looked at; if so it stands for {@link #weight} calls. */
    boolean pass() {
        return --countdown <= 0 && !closed && open();
    }

    /** How many calls the one that was last let through stands for. */
    int weight() {
        return weight;
    }

    private boolean open() {
        int ordered = (int) WANTED.getOpaque(this);
        if (ordered != NOTHING_WANTED) {
            WANTED.setOpaque(this, NOTHING_WANTED);
            spent = 0;
            if (ordered < block) {
                return cutBlock(ordered);
            }
        }
        weight = block;
        beginBlock(ordered > block ? ordered : afterSpending(), block - offset);
        return true;
    }

    /** The block ends here, wherever its sample was or would have been; this call is the first of a new one. */
    private boolean cutBlock(int newBlock) {
        beginBlock(newBlock, 1);
        if (offset > 0) {
            // beginBlock counted from before this call, which has been made already.
            countdown--;
            return false;
        }
        weight = newBlock;
        beginBlock(newBlock, newBlock);
        return true;
    }

    private void beginBlock(int newBlock, int callsUntilItsFirst) {
        BLOCK.setOpaque(this, newBlock);
        if (newBlock > coarsest) {
            COARSEST.setOpaque(this, newBlock);
        }
        offset = newBlock == 1 ? 0 : (nextRandom() >>> 7) & (newBlock - 1);
        int gap = callsUntilItsFirst + offset;
        DRAWN.setOpaque(this, drawn + gap);
        countdown = gap;
    }

    /** K grows at once, without waiting for {@link #adapt}, when the budget of a whole second is gone already. */
    private int afterSpending() {
        int affordable = block == 1 ? budget.exactBelow() : budget.samplesPerSecond();
        if (++spent <= affordable || block >= MAX_BLOCK) {
            return block;
        }
        spent = budget.samplesPerSecond() / 2;
        return block * 2;
    }

    private int nextRandom() {
        int x = random;
        x ^= x << 13;
        x ^= x >>> 17;
        x ^= x << 5;
        random = x;
        return x;
    }

    /** Sets K by the rate since the last time; to be called about once a second. */
    void adapt(double secondsSinceLast) {
        if (closed) {
            return;
        }
        int ahead = (int) COUNTDOWN.getOpaque(this);
        long calls = (long) DRAWN.getOpaque(this) - ahead - neverCounted;
        long since = calls - callsAtLastAdapt;
        callsAtLastAdapt = calls;
        if (secondsSinceLast <= 0) {
            return;
        }
        int now = (int) BLOCK.getOpaque(this);
        int next = budget.blockFor(since / secondsSinceLast, now);
        WANTED.setOpaque(this, next);
        if (next < now) {
            // At the old gap a task that has slowed down might not be heard of for minutes.
            COUNTDOWN.setOpaque(this, 0);
            neverCounted += ahead;
        }
    }

    /** The largest K in force since this was last asked: 1 says that every call since then was looked at. */
    int coarsestSinceLastAsked() {
        int now = (int) BLOCK.getOpaque(this);
        int largest = Math.max((int) COARSEST.getOpaque(this), blockWhenLastAsked);
        COARSEST.setOpaque(this, now);
        blockWhenLastAsked = now;
        return largest;
    }
}
