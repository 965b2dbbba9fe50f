// The part of Storm 2's Thrift interface that storm-operator speaks. Names, types and field ids are Storm's
// (checked against storm-client 2.8.3 by tests/functional/nimbus); fields that are not needed are left out, since a
// Thrift reader skips what it does not know.

struct NullStruct {}

struct JavaObject {
  1: required string full_class_name;
}

struct ShellComponent {
  1: string execution_command;
  2: string script;
}

union ComponentObject {
  1: binary serialized_java;
  2: ShellComponent shell;
  3: JavaObject java_object;
}

struct GlobalStreamId {
  1: required string componentId;
  2: required string streamId;
}

// A `fields` grouping without fields is Storm's global grouping.
union Grouping {
  1: list<string> fields;
  2: NullStruct shuffle;
  3: NullStruct all;
  4: NullStruct none;
  5: NullStruct direct;
  6: JavaObject custom_object;
  7: binary custom_serialized;
  8: NullStruct local_or_shuffle;
}

struct ComponentCommon {
  1: required map<GlobalStreamId, Grouping> inputs;
  3: optional i32 parallelism_hint;
  4: optional string json_conf;
}

struct SpoutSpec {
  1: required ComponentObject spout_object;
  2: required ComponentCommon common;
}

struct Bolt {
  1: required ComponentObject bolt_object;
  2: required ComponentCommon common;
}

struct StormTopology {
  1: required map<string, SpoutSpec> spouts;
  2: required map<string, Bolt> bolts;
}

struct SupervisorSummary {
  1: required string host;
  2: required i32 uptime_secs;
  3: required i32 num_workers;
  4: required i32 num_used_workers;
  5: required string supervisor_id;
  6: optional string version;
}

struct TopologySummary {
  1: required string id;
  2: required string name;
  3: required i32 num_tasks;
  4: required i32 num_executors;
  5: required i32 num_workers;
  6: required i32 uptime_secs;
  7: required string status;
  513: optional string sched_status;
}

struct NimbusSummary {
  1: required string host;
  2: required i32 port;
  3: required i32 uptime_secs;
  4: required bool isLeader;
  5: required string version;
}

struct ClusterSummary {
  1: required list<SupervisorSummary> supervisors;
  3: required list<TopologySummary> topologies;
  4: required list<NimbusSummary> nimbuses;
}

struct ExecutorInfo {
  1: required i32 task_start;
  2: required i32 task_end;
}

struct ExecutorSummary {
  1: required ExecutorInfo executor_info;
  2: required string component_id;
  3: required string host;
  4: required i32 port;
  5: required i32 uptime_secs;
}

struct ErrorInfo {
  1: required string error;
  2: required i32 error_time_secs;
  3: optional string host;
  4: optional i32 port;
}

struct TopologyInfo {
  1: required string id;
  2: required string name;
  3: required i32 uptime_secs;
  4: required list<ExecutorSummary> executors;
  5: required string status;
  6: required map<string, list<ErrorInfo>> errors;
  513: optional string sched_status;
}

enum NumErrorsChoice {
  ALL = 0
  NONE = 1
  ONE = 2
}

struct GetInfoOptions {
  1: optional NumErrorsChoice num_err_choice;
}

struct RebalanceOptions {
  1: optional i32 wait_secs;
  2: optional i32 num_workers;
  3: optional map<string, i32> num_executors;
}

struct KillOptions {
  1: optional i32 wait_secs;
}

// What a supervisor writes, gzipped, to ZooKeeper under <root>/supervisors/<id>; `meta` lists its slot ports.
struct SupervisorInfo {
  1: required i64 time_secs;
  2: required string hostname;
  4: optional list<i64> used_ports;
  5: optional list<i64> meta;
  7: optional i64 uptime_secs;
  8: optional string version;
  9: optional map<string, double> resources_map;
  10: optional i32 server_port;
}

// Only that there is an answer counts, so that its fields are left out.
struct SupervisorAssignments {}

enum TopologyStatus {
  ACTIVE = 1
  INACTIVE = 2
  REBALANCING = 3
  KILLED = 4
}

// What Nimbus writes, gzipped, to ZooKeeper under <root>/storms/<id>; `prev_status` is that to which a rebalance returns.
struct StormBase {
  1: required string name;
  2: required TopologyStatus status;
  3: required i32 num_workers;
  4: optional map<string, i32> component_executors;
  8: optional TopologyStatus prev_status;
}

exception AlreadyAliveException {
  1: required string msg;
}

exception NotAliveException {
  1: required string msg;
}

exception AuthorizationException {
  1: required string msg;
}

exception InvalidTopologyException {
  1: required string msg;
}

service Nimbus {
  NimbusSummary getLeader() throws (1: AuthorizationException aze);
  ClusterSummary getClusterInfo() throws (1: AuthorizationException aze);
  string getNimbusConf() throws (1: AuthorizationException aze);
  string beginFileUpload() throws (1: AuthorizationException aze);
  void finishFileUpload(1: string location) throws (1: AuthorizationException aze);
  TopologyInfo getTopologyInfoWithOpts(1: string id, 2: GetInfoOptions options)
    throws (1: NotAliveException e, 2: AuthorizationException aze);
  SupervisorAssignments getSupervisorAssignments(1: string node) throws (1: AuthorizationException aze);
  StormTopology getTopology(1: string id) throws (1: NotAliveException e, 2: AuthorizationException aze);
  StormTopology getUserTopology(1: string id) throws (1: NotAliveException e, 2: AuthorizationException aze);
  string getTopologyConf(1: string id) throws (1: NotAliveException e, 2: AuthorizationException aze);
  void activate(1: string name) throws (1: NotAliveException e, 2: AuthorizationException aze);
  void deactivate(1: string name) throws (1: NotAliveException e, 2: AuthorizationException aze);
  void rebalance(1: string name, 2: RebalanceOptions options)
    throws (1: NotAliveException e, 2: InvalidTopologyException ite, 3: AuthorizationException aze);
  void killTopologyWithOpts(1: string name, 2: KillOptions options)
    throws (1: NotAliveException e, 2: AuthorizationException aze);
}
