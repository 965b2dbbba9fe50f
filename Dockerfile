# The project's images. Targets:
#   operator   Python alone: `storm-operator run`
#   storm      Java, Storm, the plugin, the example topologies, and storm-operator for agent and submission
#   pipeline   Java, Spark, Delta's jars, and storm-pipeline: driver and executor alike
#
#   docker build --target operator --tag localhost/storm-operator:dev .
#   docker build --target storm --tag localhost/storm:dev .
#   docker build --target pipeline --tag localhost/storm-pipeline:dev .
#
# Behind a mirror or a private certificate authority, hand over what your own clients use. Each of these secrets is
# optional, and nothing of them stays in an image:
#   --secret id=ca,src=/etc/ssl/certs/ca-certificates.crt      certificates that pip trusts
#   --secret id=pip_config,src=$HOME/.config/pip/pip.conf      where pip finds packages
#   --secret id=java_ca,src=/etc/ssl/certs/java/cacerts        certificates that Maven trusts
#   --secret id=maven_settings,src=$HOME/.m2/settings.xml      where Maven finds artifacts
ARG BASE_IMAGE=debian:12-slim


# Python packages, as locked. The environment gets no pip of its own.
FROM ${BASE_IMAGE} AS dependencies
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates python3 python3-pip python3-venv \
    && apt-get clean && rm -rf /var/lib/apt/lists/*
ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY pyproject.toml requirements.lock ./
RUN python3 -m venv --without-pip /opt/venv \
    && python3 -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")' \
        > direct-dependencies.txt
RUN --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=secret,id=pip_config,target=/etc/pip.conf \
    python3 -m pip --python /opt/venv/bin/python install --requirement direct-dependencies.txt --constraint requirements.lock


# What the operator needs beside: recording history, and OR-Tools where somebody asks for `policy: optimal` ("history
# optimum"). Storm's image, which has agents and submissions only, goes without.
FROM dependencies AS operator-dependencies
ARG OPERATOR_EXTRAS=history
RUN python3 -c 'import sys, tomllib; extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]; \
        print(*(one for name in sys.argv[1:] for one in extras[name]), sep="\n")' $OPERATOR_EXTRAS > operator-dependencies.txt
RUN --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=secret,id=pip_config,target=/etc/pip.conf \
    python3 -m pip --python /opt/venv/bin/python install --requirement operator-dependencies.txt --constraint requirements.lock


# And what the data pipeline needs.
FROM operator-dependencies AS pipeline-dependencies
RUN python3 -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["pipeline"], sep="\n")' \
        > pipeline-dependencies.txt
RUN --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=secret,id=pip_config,target=/etc/pip.conf \
    python3 -m pip --python /opt/venv/bin/python install --requirement pipeline-dependencies.txt --constraint requirements.lock


# The project's own package, apart from its dependencies, so that a changed line of ours is a small layer.
FROM dependencies AS package
COPY README.md LICENSE ./
COPY crds crds
COPY operator/storm_operator operator/storm_operator
RUN --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=secret,id=pip_config,target=/etc/pip.conf \
    python3 -m pip --python /opt/venv/bin/python install --no-deps --prefix /opt/package .


# The same with the data pipeline in it.
FROM package AS pipeline-package
COPY pipeline/storm_pipeline pipeline/storm_pipeline
RUN --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=secret,id=pip_config,target=/etc/pip.conf \
    python3 -m pip --python /opt/venv/bin/python install --no-deps --prefix /opt/pipeline-package .


# Placement's machine code, for any x86-64 or ARM64 machine: compiling it takes minutes that no pod should spend. numba
# keeps it by the path and the content of its source, so that what is compiled here serves each image. A builder that
# keeps caches compiles anew only what comes of other sources of the search: functions of one file call those of others.
FROM dependencies AS machine-code
COPY operator/storm_operator/__init__.py operator/storm_operator/machine_code.py \
    /opt/venv/lib/python3.11/site-packages/storm_operator/
COPY operator/storm_operator/core /opt/venv/lib/python3.11/site-packages/storm_operator/core
RUN --mount=type=cache,target=/var/cache/machine-code,sharing=locked \
    sources=$(cat /opt/venv/lib/python3.11/site-packages/storm_operator/core/placement/search/*.py | sha256sum | cut -c -16) \
    && find /var/cache/machine-code -mindepth 1 -maxdepth 1 ! -name "$sources" -exec rm -r {} + \
    && NUMBA_CPU_NAME=generic NUMBA_CACHE_DIR=/var/cache/machine-code/$sources \
        /opt/venv/bin/python3 -m storm_operator.machine_code \
    && cp -r /var/cache/machine-code/$sources /opt/machine-code


# Storm from Maven Central, by the code that assembles it for `storm-operator local`, and the jars built from here.
FROM ${BASE_IMAGE} AS jars
RUN mkdir -p /usr/share/man/man1 \
    && apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates maven openjdk-17-jdk-headless python3 \
    && apt-get clean && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY operator/storm_operator/__init__.py operator/storm_operator/
COPY operator/storm_operator/core/__init__.py operator/storm_operator/core/model.py operator/storm_operator/core/
COPY operator/storm_operator/local operator/storm_operator/local
RUN --mount=type=secret,id=java_ca,target=/etc/ssl/certs/java/cacerts \
    --mount=type=secret,id=maven_settings,target=/root/.m2/settings.xml \
    --mount=type=cache,target=/root/.m2/repository \
    PYTHONPATH=operator python3 -m storm_operator.local.distribution /opt/storm
COPY operator/storm-plugin/pom.xml operator/storm-plugin/
COPY operator/storm-plugin/src/main operator/storm-plugin/src/main
COPY examples/workloads/pom.xml examples/workloads/
COPY examples/workloads/flux-parent examples/workloads/flux-parent
COPY examples/workloads/src/main examples/workloads/src/main
RUN --mount=type=secret,id=java_ca,target=/etc/ssl/certs/java/cacerts \
    --mount=type=secret,id=maven_settings,target=/root/.m2/settings.xml \
    --mount=type=cache,target=/root/.m2/repository \
    mvn --quiet --batch-mode --file operator/storm-plugin/pom.xml package \
    && mvn --quiet --batch-mode --file examples/workloads/pom.xml package \
    && mkdir -p /opt/own/extlib /opt/own/extlib-daemon /opt/own/examples \
    && cp operator/storm-plugin/target/storm-plugin.jar /opt/own/extlib/ \
    && cp operator/storm-plugin/target/storm-plugin.jar /opt/own/extlib-daemon/ \
    && cp examples/workloads/target/workloads.jar /opt/own/examples/


# What both images share. The user has a number, so that a cluster can see that it is not root.
FROM ${BASE_IMAGE} AS runtime
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates python3 \
    && apt-get clean && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --user-group --no-create-home --home-dir /tmp --shell /usr/sbin/nologin storm
ENV PATH=/opt/venv/bin:$PATH LANG=C.UTF-8 PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HOME=/tmp USER=storm
WORKDIR /tmp


FROM runtime AS operator
COPY --from=operator-dependencies /opt/venv /opt/venv
COPY --from=package /opt/package /opt/venv
COPY --from=machine-code /opt/machine-code /opt/machine-code
ENV NUMBA_CPU_NAME=generic NUMBA_CACHE_DIR=/tmp/machine-code STORM_OPERATOR_MACHINE_CODE=/opt/machine-code
USER 10001:10001
EXPOSE 8080 8081
HEALTHCHECK --start-period=30s \
    CMD ["python3", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8081/healthz', timeout=5)"]
ENTRYPOINT ["storm-operator"]
CMD ["run"]


# Storm's supervisor ends workers by the program `kill`, and looks for them by `ps`: both are of procps. Without, it halts.
FROM runtime AS java
RUN mkdir -p /usr/share/man/man1 \
    && apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps \
    && apt-get clean && rm -rf /var/lib/apt/lists/*


# What a worker's Java would else do at each start, while its topology waits: a small cluster runs here once, and shows
# which classes it needs. They fit the very Java and jars that the image below has.
FROM java AS class-data
COPY --from=jars /opt/storm /opt/storm
COPY --from=dependencies /opt/venv /opt/venv
WORKDIR /src
COPY operator/storm_operator/__init__.py operator/storm_operator/
COPY operator/storm_operator/core/__init__.py operator/storm_operator/core/host_and_port.py \
    operator/storm_operator/core/model.py operator/storm_operator/core/nimbus_name.py operator/storm_operator/core/
COPY operator/storm_operator/local operator/storm_operator/local
RUN PYTHONPATH=operator python3 -m storm_operator.local.rehearsal /opt/storm /opt/class-data


# No HEALTHCHECK: one image, several daemons. The chart has a probe for each.
FROM java AS storm
COPY --from=jars /opt/storm /opt/storm
COPY --from=dependencies /opt/venv /opt/venv
COPY --from=class-data /opt/class-data /opt/storm/class-data
COPY --from=jars /opt/own /opt/storm
COPY --from=package /opt/package /opt/venv
# Java does without an archive that does not fit, and says nothing.
RUN for kind in worker log-writer; do \
        java -Xshare:on -XX:SharedArchiveFile=/opt/storm/class-data/$kind.jsa -cp '/opt/storm/lib-worker/*' -version || exit 1; \
    done
USER 10001:10001
EXPOSE 2181 6627 6628 9464
ENTRYPOINT ["storm-operator"]
CMD ["--help"]


# Delta and S3 for Spark from Maven Central, by the code that fetches it for `make spark-jars`.
FROM dependencies AS spark-jars
RUN mkdir -p /usr/share/man/man1 \
    && apt-get update \
    && apt-get install --yes --no-install-recommends maven openjdk-17-jre-headless \
    && apt-get clean && rm -rf /var/lib/apt/lists/*
COPY operator/storm_operator/__init__.py operator/storm_operator/
COPY operator/storm_operator/core/__init__.py operator/storm_operator/core/model.py operator/storm_operator/core/
COPY operator/storm_operator/local operator/storm_operator/local
COPY pipeline/storm_pipeline/__init__.py pipeline/storm_pipeline/error_console.py pipeline/storm_pipeline/jars.py \
    pipeline/storm_pipeline/
COPY pipeline/storm_pipeline/resources/spark-jars-pom.xml pipeline/storm_pipeline/resources/
RUN --mount=type=secret,id=java_ca,target=/etc/ssl/certs/java/cacerts \
    --mount=type=secret,id=maven_settings,target=/root/.m2/settings.xml \
    --mount=type=cache,target=/root/.m2/repository \
    PYTHONPATH=operator:pipeline STORM_PIPELINE_JARS=/opt/spark-jars \
    /opt/venv/bin/python3 -c 'from storm_pipeline.jars import ensure_jars; ensure_jars()'


# Spark's own images are not needed: what PyPI's pyspark brings is all of Spark, and an entry point is a few lines.
FROM runtime AS pipeline
RUN mkdir -p /usr/share/man/man1 \
    && apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps tini \
    && apt-get clean && rm -rf /var/lib/apt/lists/*
COPY --from=pipeline-dependencies /opt/venv /opt/venv
COPY --from=spark-jars /opt/spark-jars /opt/spark-jars
COPY --from=pipeline-package /opt/pipeline-package /opt/venv
COPY --from=machine-code /opt/machine-code /opt/machine-code
COPY pipeline/image/entrypoint.sh /opt/entrypoint.sh
ENV STORM_PIPELINE_JARS=/opt/spark-jars SPARK_HOME=/opt/venv/lib/python3.11/site-packages/pyspark \
    STORM_PIPELINE_MAIN=/opt/venv/lib/python3.11/site-packages/storm_pipeline/__main__.py PYSPARK_PYTHON=/opt/venv/bin/python3 \
    NUMBA_CPU_NAME=generic NUMBA_CACHE_DIR=/tmp/machine-code STORM_OPERATOR_MACHINE_CODE=/opt/machine-code
USER 10001:10001
ENTRYPOINT ["/usr/bin/tini", "-g", "--", "/opt/entrypoint.sh"]
CMD ["--help"]
