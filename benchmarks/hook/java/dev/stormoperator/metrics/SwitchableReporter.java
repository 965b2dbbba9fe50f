package dev.stormoperator.metrics;

/** The reporter, idle while the hook is off. */
public final class SwitchableReporter extends SnapshotReporter {
    static volatile boolean on = true;
    private static volatile SwitchableReporter instance;

    public SwitchableReporter() {
        instance = this;
    }

    /** As many reports as a worker makes in some minutes, so that it is not the interpreter that is measured. */
    static void warmUp() {
        for (int i = 0; i < 300; i++) {
            instance.report();
        }
    }

    @Override
    void report() {
        if (on) {
            super.report();
        }
    }

    @Override
    double shareOfTimeInUse() {
        return Switch.mode == Switch.Mode.ALTERNATE ? 0.5 : 1;
    }
}
