package dev.stormoperator.workloads;

import java.util.List;
import java.util.Map;
import org.apache.storm.spout.SpoutOutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.base.BaseRichSpout;
import org.apache.storm.tuple.Values;

/**
 * A source of generated tuples that keeps to a rate. Reliable unless told otherwise: tuples carry message ids, so that
 * Storm tracks and times them; what fails is counted by Storm and not sent again.
 */
public abstract class PacedSpout extends BaseRichSpout {

    private static final long serialVersionUID = 1L;

    private final Rate rate;
    private boolean reliable = true;
    private long cpuMicros;

    private transient SpoutOutputCollector collector;
    private transient Pacer pacer;
    private transient CpuBurner burner;
    private transient double share;
    private transient long sent;

    /**
     * A source whose tasks together emit at {@code rate}.
     *
     * @param rate see {@link RateProfile}; its time begins now, that is at submission
     */
    protected PacedSpout(String rate) {
        this.rate = new Rate(RateProfile.parse("rate", rate), System.currentTimeMillis());
    }

    /** Path of a file on the workers' machines that changes the rate at run time; null: none. */
    public void setRateFile(String rateFile) {
        rate.follow(rateFile);
    }

    /** CPU to spend on each tuple, in microseconds. */
    public void setCpuMicros(long cpuMicros) {
        this.cpuMicros = cpuMicros;
    }

    public void setReliable(boolean reliable) {
        this.reliable = reliable;
    }

    @Override
    public void open(Map<String, Object> conf, TopologyContext context, SpoutOutputCollector out) {
        collector = out;
        pacer = new Pacer(System.nanoTime());
        burner = new CpuBurner();
        share = share(context.getThisTaskIndex(), context.getComponentTasks(context.getThisComponentId()).size());
        opened(context);
    }

    @Override
    public void nextTuple() {
        if (pacer.take(System.nanoTime(), share * rate.perSecond(System.currentTimeMillis()))) {
            burner.burn(cpuMicros);
            Values tuple = next();
            List<Integer> targets = reliable ? collector.emit(tuple, Long.valueOf(sent++)) : collector.emit(tuple);
            emitted(targets);
        }
    }

    /** The part of the rate that task {@code index} of {@code tasks} emits. */
    protected double share(int index, int tasks) {
        return 1.0 / tasks;
    }

    /** Called once before the first {@link #next}. */
    protected void opened(TopologyContext context) {
    }

    /** The next tuple of the default stream. */
    protected abstract Values next();

    /** Called with the tasks that a tuple was just sent to. */
    protected void emitted(List<Integer> targets) {
    }
}
