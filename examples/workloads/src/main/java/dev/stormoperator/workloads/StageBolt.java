package dev.stormoperator.workloads;

import java.util.Map;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.BasicOutputCollector;
import org.apache.storm.topology.base.BaseBasicBolt;
import org.apache.storm.tuple.Tuple;

/** A bolt that spends a settable amount of CPU on each tuple, then does its work; tuples are anchored and acked. */
public abstract class StageBolt extends BaseBasicBolt {

    private static final long serialVersionUID = 1L;

    private long cpuMicros;
    private transient CpuBurner burner;

    /** CPU to spend on each tuple, in microseconds. */
    public void setCpuMicros(long cpuMicros) {
        this.cpuMicros = cpuMicros;
    }

    @Override
    public final void prepare(Map<String, Object> conf, TopologyContext context) {
        burner = new CpuBurner();
        prepared(context);
    }

    @Override
    public final void execute(Tuple input, BasicOutputCollector collector) {
        burner.burn(cpuMicros);
        process(input, collector);
    }

    /** Called once before the first {@link #process}. */
    protected void prepared(TopologyContext context) {
    }

    protected abstract void process(Tuple input, BasicOutputCollector collector);
}
