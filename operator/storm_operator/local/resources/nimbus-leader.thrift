// The least that tells whether a cluster is ready; the operator's own client has the rest.
struct NimbusSummary {
  1: required string host;
  2: required i32 port;
  4: required bool isLeader;
}

struct SupervisorSummary {
  1: required string host;
  3: required i32 num_workers;
}

struct ClusterSummary {
  1: required list<SupervisorSummary> supervisors;
}

service Nimbus {
  NimbusSummary getLeader();
  ClusterSummary getClusterInfo();
}
