package dev.stormoperator.metrics;

/** One task of this worker, with what samples it and what counts for it. */
record TaskRecord(int id, boolean isSpout, SamplingGate gate, TaskCounts counts) {}
