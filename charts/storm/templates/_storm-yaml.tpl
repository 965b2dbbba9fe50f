{{/*
storm.yaml, one for all pods. What differs between them (storm.local.hostname) is on their command lines.
The values are those of the cluster that `storm-operator local` makes; the tests hold the two together.
*/}}
{{- define "storm.conf" -}}
storm.cluster.mode: distributed
storm.zookeeper.servers: {{ include "storm.zookeeper.servers" . }}
storm.zookeeper.port: {{ include "storm.zookeeper.port" . }}
storm.zookeeper.root: {{ .Values.zookeeperRoot }}
nimbus.seeds: {{ include "storm.nimbus.seeds" . }}
nimbus.thrift.port: 6627
storm.local.dir: /var/lib/storm
# By default in Storm's home, which nobody may write to.
storm.metricstore.rocksdb.location: /var/lib/storm/metric-store
storm.workers.artifacts.dir: /var/log/storm/workers-artifacts
topology.message.timeout.secs: 30
topology.worker.max.heap.size.mb: {{ int .Values.supervisor.workerHeapMb }}.0
worker.heap.memory.mb: {{ int .Values.supervisor.workerHeapMb }}
worker.childopts: {{ include "storm.worker.childopts" . | quote }}
topology.worker.logwriter.childopts: {{ include "storm.logwriter.childopts" . | quote }}

# The plugin.
storm.scheduler: dev.stormoperator.scheduler.PlanScheduler
storm_operator.fallback.scheduler: {{ .Values.fallbackScheduler }}
topology.auto.task.hooks: [dev.stormoperator.metrics.TrafficHook]
storm.topology.metrics.system.reporters:
  - class: dev.stormoperator.metrics.SnapshotReporter
storm_operator.metrics.exact: {{ .Values.exactMetrics }}
storm_operator.metrics.dir: /var/lib/storm-metrics

# Supervisors.
supervisor.slots.ports: [{{ range $slot := until (int .Values.supervisor.slots) }}{{ if $slot }}, {{ end }}{{ add 6700 $slot }}{{ end }}]
supervisor.thrift.port: 6628
supervisor.cpu.capacity: {{ divf (include "storm.millicores" .Values.supervisor.resources.limits.cpu) 10 }}
supervisor.memory.capacity.mb: {{ include "storm.mebibytes" .Values.supervisor.resources.limits.memory }}.0

# Storm's defaults suit machines that fail once a month; here things move and fail every minute.
nimbus.monitor.freq.secs: 1
nimbus.supervisor.timeout.secs: 15
nimbus.task.timeout.secs: 15
# As patient as the supervisors: a worker that is killed before it has written down its process id lives on and holds its port.
nimbus.task.launch.secs: 120
supervisor.worker.start.timeout.secs: 120
# Else a supervisor that was away is shunned for half an hour.
blacklist.scheduler.tolerance.count: 1000
supervisor.monitor.frequency.secs: 1
supervisor.heartbeat.frequency.secs: 2
supervisor.worker.shutdown.sleep.secs: 1
task.refresh.poll.secs: 1
executor.metrics.frequency.secs: 2
storm.messaging.netty.max_wait_ms: 200
storm.zookeeper.session.timeout: 6000
storm.zookeeper.connection.timeout: 6000
storm.zookeeper.retry.interval: 200
storm.zookeeper.retry.intervalceiling.millis: 1000

# By default an idle executor polls its queue a thousand times before it sleeps: CPU that its limit would pay for.
topology.bolt.wait.strategy: org.apache.storm.policy.WaitStrategyPark
topology.bolt.wait.park.microsec: 600
{{- end -}}

{{/*
Settings that not storm.yaml alone goes by, but probes, Services, network policies, the agents and the operator, too: `config`
cannot change them. Each with what can.
*/}}
{{- define "storm.conf.elsewhere" -}}
nimbus.seeds: set nimbus.replicas instead
nimbus.thrift.port: leave it out
storm.zookeeper.port: set externalZookeeper.port instead
storm.zookeeper.root: set zookeeperRoot instead
storm.zookeeper.servers: set externalZookeeper.servers instead
storm_operator.metrics.dir: leave it out
supervisor.slots.ports: set supervisor.slots instead
supervisor.thrift.port: leave it out
{{- end -}}

{{/*
Classes of the plugin without which nothing is placed or measured: `config` may name others beside them.
*/}}
{{- define "storm.conf.classes" -}}
storm.scheduler: carries out the operator's plans; set fallbackScheduler for executors that no plan places
topology.auto.task.hooks: measures traffic; name it as well
storm.topology.metrics.system.reporters: measures executors; name it as well
{{- end -}}

{{- define "storm.conf.check" -}}
{{- $own := include "storm.conf" . | fromYaml -}}
{{- range $setting, $what := include "storm.conf.classes" . | fromYaml -}}
{{- $class := regexFind `dev\.stormoperator\.[A-Za-z.]+` (get $own $setting | toJson) -}}
{{- $given := get $.Values.config $setting | toJson -}}
{{- if and (hasKey $.Values.config $setting) (not (contains (quote $class) $given)) -}}
{{- fail (printf "config: %s: %s lacks %s, which %s" $setting $given $class $what) -}}
{{- end -}}
{{- end -}}
{{- range $setting, $instead := include "storm.conf.elsewhere" . | fromYaml -}}
{{- $given := get $.Values.config $setting -}}
{{- if and (hasKey $.Values.config $setting) (ne (toJson $given) (get $own $setting | toJson)) -}}
{{- fail (printf "config: %s: %s would be in storm.yaml alone, while probes, Services, agents and the like go by %s: %s" $setting (toJson $given) (get $own $setting | toJson) $instead) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "storm.yaml" -}}
{{ mustMergeOverwrite (include "storm.conf" . | fromYaml) .Values.config | toYaml }}
{{- end -}}
