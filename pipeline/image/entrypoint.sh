#!/bin/sh
# What a container of the pipeline's image does: an executor or a driver where Spark asks for one, else a job.
set -eu

# Spark hands over an executor's Java options as SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1, ..., one word or several in each.
java_options() {
  env | sed -n 's/^SPARK_JAVA_OPT_[0-9]*=//p'
}

# Placement's machine code, which the simulator of `tune` needs: its cache must be in a folder that can be written.
test -e "$NUMBA_CACHE_DIR" || cp -r "$STORM_OPERATOR_MACHINE_CODE" "$NUMBA_CACHE_DIR"

case "${1:-}" in
  executor)
    # shellcheck disable=SC2046 # several options, each a word
    exec java $(java_options) "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
      -cp "$SPARK_HOME/jars/*:${SPARK_EXTRA_CLASSPATH:-$STORM_PIPELINE_JARS/*}:${SPARK_CONF_DIR:-}" \
      org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
      --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
      --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \
      --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME"
    ;;
  driver)
    shift
    exec "$SPARK_HOME/bin/spark-submit" --deploy-mode client \
      --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" \
      --conf "spark.driver.extraClassPath=$STORM_PIPELINE_JARS/*" "$@"
    ;;
  spark-submit)
    shift
    exec "$SPARK_HOME/bin/spark-submit" --conf "spark.driver.extraClassPath=$STORM_PIPELINE_JARS/*" "$@"
    ;;
  *)
    exec storm-pipeline "$@"
    ;;
esac
