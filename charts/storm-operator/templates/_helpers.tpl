{{- define "operator.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{/* For what has no namespace: two releases of one name may live in two namespaces. */}}
{{- define "operator.clusterName" -}}
{{ .Release.Namespace }}.{{ include "operator.fullname" . }}
{{- end -}}

{{- define "operator.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ default (include "operator.fullname" .) .Values.serviceAccount.name }}
{{- else -}}
{{ default "default" .Values.serviceAccount.name }}
{{- end -}}
{{- end -}}

{{- define "operator.selector" -}}
app.kubernetes.io/name: storm-operator
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: operator
{{- end -}}

{{/* Of the pipeline's pods, beside app.kubernetes.io/component: pipeline or pipeline-executor. */}}
{{- define "operator.pipeline.selector" -}}
app.kubernetes.io/name: storm-operator
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "operator.commonLabels" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "operator.labels" -}}
{{ include "operator.selector" . }}
{{ include "operator.commonLabels" . }}
{{- end -}}

{{- define "operator.image" -}}
image: {{ .Values.image.repository }}:{{ .Values.image.tag }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end -}}

{{/*
Both meet the pod security level `restricted`. A volume that was just made belongs to root: without fsGroup nothing can be
written to a claim of history.
*/}}
{{- define "operator.pod.security" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "operator.container.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* Refuses a folder that pods cannot write to: they share history's claim; all else is read-only, or ends with the pod. */}}
{{- define "operator.folder.check" -}}
{{- $folder := regexReplaceAll "^file:(//)?" .path "" -}}
{{- $isOnClaim := and .root.Values.history.existingClaim (hasPrefix "/history/" (printf "%s/" (clean $folder))) -}}
{{- if and (hasPrefix "/" $folder) (not $isOnClaim) -}}
{{- fail (printf "%s is %s, where %s cannot write: /history or a folder below it, with history.existingClaim, is right, or a URL such as s3://bucket/prefix" .value .path .who) -}}
{{- end -}}
{{- end -}}

{{/* Where history is recorded; empty where it is not. A URL, or a folder of the claim. */}}
{{- define "operator.history" -}}
{{- if .Values.history.path -}}
{{- include "operator.folder.check" (dict "root" . "value" "history.path" "path" .Values.history.path "who" "the operator") -}}
{{ .Values.history.path }}
{{- else if .Values.history.existingClaim -}}
/history
{{- end -}}
{{- end -}}

{{/* Of values.submission, what goes into the pods of its Jobs and was given at all. */}}
{{- define "operator.submission.pod" -}}
{{- range $name := list "resources" "nodeSelector" "tolerations" "imagePullSecrets" "deadlineSeconds" }}
{{- with index $.Values.submission $name }}
{{ $name }}: {{ toJson . }}
{{- end }}
{{- end }}
{{- end -}}

{{/* A shell's words, each after a space, whatever is in it. */}}
{{- define "operator.shellWords" -}}
{{- range . }} '{{ replace "'" "'\\''" . }}'{{ end -}}
{{- end -}}

{{/* Refuses what Kubernetes' cron does not understand, by its field, and the days that no month has. */}}
{{- define "operator.schedule.check" -}}
{{- $fields := splitList " " . -}}
{{- $each := list
  (list "minute" "[0-5]?[0-9]" "0 to 59")
  (list "hour" "([01]?[0-9]|2[0-3])" "0 to 23")
  (list "day of the month" "(0?[1-9]|[12][0-9]|3[01])" "1 to 31")
  (list "month" "(0?[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)" "1 to 12 or jan to dec")
  (list "weekday" "([0-6]|sun|mon|tue|wed|thu|fri|sat)" "0 to 6 or sun to sat") -}}
{{- if hasPrefix "@" . -}}
{{- if not (regexMatch "^@(yearly|annually|monthly|weekly|daily|midnight|hourly)$" .) -}}
{{- fail (printf "pipeline.schedule: %s is none of @hourly, @daily, @weekly, @monthly and @yearly" .) -}}
{{- end -}}
{{- else -}}
{{- range $number, $field := $each -}}
{{- $part := printf "([*?]|%s(-%s)?)(/[1-9][0-9]*)?" (index $field 1) (index $field 1) -}}
{{- if not (regexMatch (printf "(?i)^%s(,%s)*$" $part $part) (index $fields $number)) -}}
{{- fail (printf "pipeline.schedule: %s has %q for its %s; %s is right, * for any, with - , and / as cron has them" $ (index $fields $number) (index $field 0) (index $field 2)) -}}
{{- end -}}
{{- end -}}
{{- if regexMatch "(?i)^\\S+ \\S+ (3[01] (0?2|feb)|31 (0?[469]|11|apr|jun|sep|nov)) [*?]$" . -}}
{{- fail (printf "pipeline.schedule: %s is of a day that its month never has" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
