{{/* What every JVM gets. Pods change their addresses: names must not be remembered for long. */}}
{{- define "storm.jvm.names" -}}
- -Dsun.net.inetaddr.ttl=5
- -Dsun.net.inetaddr.negative.ttl=1
{{- end -}}

{{/* A daemon's command line. Takes root, kind, heapMb, extra (JVM options), properties, main, arguments. */}}
{{- define "storm.java" -}}
- java
- -Xmx{{ int .heapMb }}m
- -XX:+UseSerialGC
- -Xshare:auto
- -XX:TieredStopAtLevel=1
- -Xss256k
- -XX:-UsePerfData
- -XX:MaxMetaspaceSize=96m
- -XX:ReservedCodeCacheSize=32m
{{ include "storm.jvm.names" . }}
{{- range .extra }}
- {{ . | quote }}
{{- end }}
- -Dstorm.home=/opt/storm
- -Dstorm.log.dir=/var/log/storm
- -Dlogfile.name={{ .kind }}.log
- -Dlog4j.configurationFile=/etc/storm/log4j2-daemon.xml
- -Djava.library.path=/opt/storm/native
- -Dstorm.conf.file=
{{- if .hostname }}
# Storm's own form of a setting on a command line, which workers inherit: key="value", URL-encoded.
- -Dstorm.options=storm.local.hostname%3D%22{{ .hostname }}%22
{{- else }}
- -Dstorm.options=
{{- end }}
- -cp
- /opt/storm/lib/*:/opt/storm/extlib/*:/opt/storm/extlib-daemon/*:/etc/storm
- {{ .main }}
{{- range .arguments }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{/* Classes that the image has parsed already (see the Dockerfile). Where they do not fit Java parses all anew, its own too. */}}
{{- define "storm.jvm.classData" -}}
-XX:SharedArchiveFile=/opt/storm/class-data/{{ . }}.jsa
{{- end -}}

{{/* Workers run C2, but later than usual: see storm_operator/local/jvm.py, whose options these are. */}}
{{- define "storm.worker.childopts" -}}
{{- $heap := int .Values.supervisor.workerHeapMb -}}
{{- $options := list (printf "-Xmx%dm" $heap) (printf "-Xms%dm" (div $heap 2)) -}}
{{- $options = concat $options (list "-XX:+UseSerialGC" "-Xshare:auto" "-XX:-UsePerfData" "-XX:MaxMetaspaceSize=128m" "-XX:ReservedCodeCacheSize=64m") -}}
{{- $options = concat $options (list "-XX:Tier4InvocationThreshold=20000" "-XX:Tier4MinInvocationThreshold=3000" "-XX:Tier4CompileThreshold=40000") -}}
{{- if lt $heap 32000 -}}{{/* Java's pointers have another form beyond, and its own archive for it */}}
{{- $options = append $options (include "storm.jvm.classData" "worker") -}}
{{- end -}}
{{- $options = concat $options (include "storm.jvm.names" . | fromYamlArray) .Values.supervisor.workerJvmOptions -}}
{{ join " " $options }}
{{- end -}}

{{- define "storm.logwriter.childopts" -}}
-Xmx16m -XX:+UseSerialGC -Xshare:auto -XX:TieredStopAtLevel=1 -Xss256k -XX:-UsePerfData -XX:MaxMetaspaceSize=32m -XX:ReservedCodeCacheSize=8m {{ include "storm.jvm.classData" "log-writer" }}
{{- end -}}
