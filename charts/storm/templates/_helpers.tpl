{{/* Names are those that storm-operator expects: <release>-zookeeper, <release>-nimbus, <release>-supervisor. */}}
{{- define "storm.name" -}}
{{ .root.Release.Name }}-{{ .component }}
{{- end -}}

{{- define "storm.chart" -}}
{{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* What tells the pods of one component of this release from all others. */}}
{{- define "storm.selector" -}}
app.kubernetes.io/name: storm
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "storm.labels" -}}
{{ include "storm.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ include "storm.chart" .root }}
{{- end -}}

{{- define "storm.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag }}
{{- end -}}

{{- define "storm.serviceAccount" -}}
{{ .Release.Name }}-storm
{{- end -}}

{{/* A pod's full name, from inside that pod: the kubelet puts in the pod's own name. */}}
{{- define "storm.podHost" -}}
$(POD_NAME).{{ include "storm.name" . }}.{{ .root.Release.Namespace }}.svc.{{ .root.Values.clusterDomain }}
{{- end -}}

{{- define "storm.zookeeper.servers" -}}
{{- if .Values.zookeeper.enabled -}}
{{ list (printf "%s-zookeeper.%s.svc.%s" .Release.Name .Release.Namespace .Values.clusterDomain) | toJson }}
{{- else -}}
{{ .Values.externalZookeeper.servers | toJson }}
{{- end -}}
{{- end -}}

{{- define "storm.zookeeper.port" -}}
{{ ternary 2181 .Values.externalZookeeper.port .Values.zookeeper.enabled }}
{{- end -}}

{{/* host:port,host:port */}}
{{- define "storm.zookeeper.addresses" -}}
{{- $port := include "storm.zookeeper.port" . -}}
{{- $addresses := list -}}
{{- range include "storm.zookeeper.servers" . | fromJsonArray -}}
{{- $addresses = append $addresses (printf "%s:%s" . $port) -}}
{{- end -}}
{{ join "," $addresses }}
{{- end -}}

{{/* Full names of all Nimbus pods, as JSON. */}}
{{- define "storm.nimbus.seeds" -}}
{{- $seeds := list -}}
{{- range $ordinal := until (int .Values.nimbus.replicas) -}}
{{- $seeds = append $seeds (printf "%s-nimbus-%d.%s-nimbus.%s.svc.%s" $.Release.Name $ordinal $.Release.Name $.Release.Namespace $.Values.clusterDomain) -}}
{{- end -}}
{{ $seeds | toJson }}
{{- end -}}

{{/* "500m", "2", 0.5 -> millicores, a whole number */}}
{{- define "storm.millicores" -}}
{{- $quantity := toString . -}}
{{- if hasSuffix "m" $quantity -}}
{{ trimSuffix "m" $quantity }}
{{- else -}}
{{ round (mulf (float64 $quantity) 1000.0) 0 | int }}
{{- end -}}
{{- end -}}

{{/* "512Mi", "3Gi", "1G", 1073741824 -> MiB, a whole number */}}
{{- define "storm.mebibytes" -}}
{{- $quantity := toString . -}}
{{- $bytes := dict "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "k" 1e3 "M" 1e6 "G" 1e9 -}}
{{- $unit := regexFind "[A-Za-z]*$" $quantity -}}
{{ divf (mulf (float64 (trimSuffix $unit $quantity)) (ternary 1.0 (get $bytes $unit) (eq $unit ""))) 1048576.0 | floor | int }}
{{- end -}}

{{/* How many supervisors: while others scale them, what the StatefulSet has now; where that is not to be seen, one or more. */}}
{{- define "storm.supervisor.replicas" -}}
{{- $found := dict -}}
{{- if .Values.supervisor.scaling.enabled -}}
{{- $found = lookup "apps/v1" "StatefulSet" .Release.Namespace (printf "%s-supervisor" .Release.Name) -}}
{{- end -}}
{{- if $found -}}
{{ $found.spec.replicas }}
{{- else if .Values.supervisor.scaling.omitReplicas -}}
1
{{- else -}}
{{ .Values.supervisor.replicas }}
{{- end -}}
{{- end -}}

{{/*
What the schema cannot judge: the release's name, and combinations of values. Services take names that begin with a letter and
have no dots. A StatefulSet of more than 52 characters gets no pods, and nothing but its events says so: each pod has a label
with its StatefulSet's name, a dash and up to ten characters more, and labels have 63 at most. "-supervisor" is eleven.
*/}}
{{- define "storm.check" -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]{0,39}[a-z0-9])?$" .Release.Name) -}}
{{- fail (printf "the release's name: %s has %d characters; up to 41 small letters, digits and dashes, a letter first, are right" .Release.Name (len .Release.Name)) -}}
{{- end -}}
{{- if and (not .Values.zookeeper.enabled) (not .Values.externalZookeeper.servers) -}}
{{- fail "externalZookeeper.servers: empty, and zookeeper.enabled is false. Name your ZooKeeper's hosts, for example [zk-0.example, zk-1.example]" -}}
{{- end -}}
{{- if and .Values.zookeeper.enabled .Values.externalZookeeper.servers -}}
{{- fail (printf "externalZookeeper.servers: %s, and zookeeper.enabled is true, with which Storm uses the chart's own ZooKeeper. Set zookeeper.enabled: false" (join ", " .Values.externalZookeeper.servers)) -}}
{{- end -}}
{{- if and .Values.supervisor.scaling.enabled (lt (int .Values.supervisor.scaling.maxReplicas) (int .Values.supervisor.replicas)) -}}
{{- fail (printf "supervisor.scaling.maxReplicas: %v is less than supervisor.replicas, %v" .Values.supervisor.scaling.maxReplicas .Values.supervisor.replicas) -}}
{{- end -}}
{{- if and .Values.supervisor.scaling.omitReplicas (not .Values.supervisor.scaling.enabled) -}}
{{- fail "supervisor.scaling.omitReplicas: true, and supervisor.scaling.enabled is false: nobody would say how many supervisors there are" -}}
{{- end -}}
{{- $request := ((.Values.supervisor.resources).requests).cpu -}}
{{- $limit := .Values.supervisor.resources.limits.cpu -}}
{{- if lt (int (include "storm.millicores" $limit)) 1 -}}
{{- fail (printf "supervisor.resources.limits.cpu: %v is less than a millicore" $limit) -}}
{{- end -}}
{{- if and $request (gt (int (include "storm.millicores" $request)) (int (include "storm.millicores" $limit))) -}}
{{- fail (printf "supervisor.resources.requests.cpu: %v is more than supervisor.resources.limits.cpu, %v" $request $limit) -}}
{{- end -}}
{{- include "storm.conf.check" . -}}
{{- end -}}
