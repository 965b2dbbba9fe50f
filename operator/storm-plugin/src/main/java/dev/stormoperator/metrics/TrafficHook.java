package dev.stormoperator.metrics;

import dev.stormoperator.metrics.SamplingGate.Budget;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.storm.daemon.StormCommon;
import org.apache.storm.hooks.BaseTaskHook;
import org.apache.storm.hooks.info.BoltAckInfo;
import org.apache.storm.hooks.info.BoltExecuteInfo;
import org.apache.storm.hooks.info.BoltFailInfo;
import org.apache.storm.hooks.info.EmitInfo;
import org.apache.storm.hooks.info.SpoutAckInfo;
import org.apache.storm.hooks.info.SpoutFailInfo;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.utils.ConfigUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Counts what one task sends to which task, what it executes, acks and fails, and how long its tuples take.
 *
 * <p>Switched on by {@code topology.auto.task.hooks} in storm.yaml (or by {@link SnapshotReporter} alone). Storm makes
 * one for each task. Calls are sampled before they reach it ({@link GatedHooks}) or, where that is not possible, in it.
 */
public class TrafficHook extends BaseTaskHook {
    private static final Logger LOG = LoggerFactory.getLogger(TrafficHook.class);
    private static final AtomicBoolean TOLD_OF_FALLBACK = new AtomicBoolean();
    private static final AtomicBoolean TOLD_OF_FAILURE = new AtomicBoolean();
    private static final String EXECUTOR_KEY = "storm_operator.executor";
    /**
     * Looking at a call costs up to a microsecond on a busy machine. Slow tasks are counted exactly; for fast ones, 500
     * calls a second give each pair of tasks to within some 2% in half a minute (docs/reference/hook-cost.md).
     */
    private static final Budget UNACKED = new Budget(4000, 500);
    /** Where tuples are acked, half of the calls are acks and tell nothing of traffic. */
    private static final Budget ACKED = new Budget(4000, 1000);
    /** Only every twentieth ack that is looked at carries a latency. */
    private static final Budget ACKED_SPOUT = new Budget(8000, 2000);

    private GatedHooks gatedHooks;
    private ExecutorRecord executor;
    private SamplingGate gate;
    private TaskCounts counts;
    private int latencyWeight;
    private boolean ready;

    @Override
    public void prepare(Map<String, Object> conf, TopologyContext context) {
        try {
            boolean isSystemTask = context.getThisTaskId() < 0;
            boolean isSecondOfUs = context.getHooks().stream().anyMatch(TrafficHook.class::isInstance);
            if (!isSystemTask && !isSecondOfUs) {
                startCounting(conf, context);
            }
        } catch (RuntimeException | LinkageError e) {
            tellOfFailure(e);
        }
    }

    private void startCounting(Map<String, Object> conf, TopologyContext context) {
        int task = context.getThisTaskId();
        boolean isSpout = context.getRawTopology().get_spouts().containsKey(context.getThisComponentId());
        boolean isAcked = StormCommon.hasAckers(conf);
        WorkerMetrics worker = WorkerMetrics.of(context.getStormId(), context.getThisWorkerPort());
        worker.componentsAre(context.getComponentIds());
        gate = newGate(conf, context, isSpout, isAcked);
        counts = new TaskCounts(worker.cells());
        latencyWeight = isAcked ? ConfigUtils.samplingRate(conf) : 0;
        executor = executorOf(context, worker);
        executor.add(new TaskRecord(task, isSpout, gate, counts));
        gatedHooks = gatedOrNull(context);
        ready = true;
    }

    private SamplingGate newGate(Map<String, Object> conf, TopologyContext context, boolean isSpout, boolean isAcked) {
        int seed = System.identityHashCode(this) * 31 + context.getThisTaskId();
        if (MetricsSettings.isExact(conf)) {
            return new SamplingGate(Budget.UNLIMITED, seed);
        }
        // A task that sends nothing, acks neither, has no traffic to tell of; Storm itself counts what it executes.
        boolean sendsNothing = !isAcked && context.getThisTargets().isEmpty();
        return sendsNothing ? SamplingGate.closed() : new SamplingGate(budget(isSpout, isAcked), seed);
    }

    private static Budget budget(boolean isSpout, boolean isAcked) {
        if (!isAcked) {
            return UNACKED;
        }
        return isSpout ? ACKED_SPOUT : ACKED;
    }

    private static ExecutorRecord executorOf(TopologyContext context, WorkerMetrics worker) {
        ExecutorRecord executor = (ExecutorRecord) context.getExecutorData(EXECUTOR_KEY);
        if (executor == null) {
            executor = worker.newExecutor(context.getThisComponentId());
            context.setExecutorData(EXECUTOR_KEY, executor);
        }
        return executor;
    }

    private GatedHooks gatedOrNull(TopologyContext context) {
        try {
            return GatedHooks.install(context, gate);
        } catch (ReflectiveOperationException | RuntimeException e) {
            if (TOLD_OF_FALLBACK.compareAndSet(false, true)) {
                LOG.warn("storm-operator: this version of Storm keeps its task hooks otherwise ({}); traffic is measured all"
                        + " the same, but at the cost of a plain task hook", e.toString());
            }
            return null;
        }
    }

    /** Whether the call that Storm has just told of is one to count. */
    private boolean passed() {
        if (!ready || (gatedHooks == null || !gatedHooks.filters()) && !gate.pass()) {
            return false;
        }
        executor.noticeThread();
        return true;
    }

    @Override
    public void emit(EmitInfo info) {
        try {
            if (passed()) {
                counts.emitted(info.stream, info.outTasks, gate.weight());
            }
        } catch (RuntimeException | LinkageError e) {
            stopCounting(e);
        }
    }

    @Override
    public void boltExecute(BoltExecuteInfo info) {
        try {
            if (passed()) {
                counts.executed(info.tuple.getSourceComponent(), info.tuple.getSourceStreamId(), gate.weight());
            }
        } catch (RuntimeException | LinkageError e) {
            stopCounting(e);
        }
    }

    @Override
    public void boltAck(BoltAckInfo info) {
        if (passed()) {
            counts.ackedSome(gate.weight());
        }
    }

    @Override
    public void spoutAck(SpoutAckInfo info) {
        // Without ackers Storm "acks" at once; that is neither an ack nor a latency.
        if (passed() && latencyWeight > 0) {
            counts.ackedSome(gate.weight());
            if (info.completeLatencyMs != null) {
                counts.completed(info.completeLatencyMs, (long) gate.weight() * latencyWeight);
            }
        }
    }

    @Override
    public void boltFail(BoltFailInfo info) {
        if (ready) {
            counts.failedOne();
        }
    }

    @Override
    public void spoutFail(SpoutFailInfo info) {
        if (ready) {
            counts.failedOne();
        }
    }

    private void stopCounting(Throwable reason) {
        ready = false;
        counts.stop();
        tellOfFailure(reason);
    }

    private static void tellOfFailure(Throwable reason) {
        if (TOLD_OF_FAILURE.compareAndSet(false, true)) {
            LOG.warn("storm-operator: a task's traffic cannot be measured; its tuples are not affected", reason);
        }
    }
}
