{{/* Parts that all pods share. They meet the pod security level `restricted`, the agent's opt-in apart. */}}

{{- define "storm.pod.security" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "storm.container.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "storm.container.image" -}}
image: {{ include "storm.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end -}}

{{/* Spec that each pod begins with; `pod` of the component's values comes in here. Takes root, component, values. */}}
{{- define "storm.pod.spec" -}}
serviceAccountName: {{ include "storm.serviceAccount" .root }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
securityContext: {{ include "storm.pod.security" .root | nindent 2 }}
{{- with .values.pod }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/*
A new storm.yaml is a new pod, else it would come with the next accident. A new version of the chart is not, nor are its
scripts: they are read at the next start.
*/}}
{{- define "storm.pod.annotations" -}}
checksum/storm.yaml: {{ include "storm.yaml" . | sha256sum }}
{{- end -}}

{{- define "storm.env.pod" -}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: STORM_CONF_DIR
  value: /etc/storm
# Where none is told Java 17 takes text without a charset of its own for ASCII: workers, which inherit this, would spoil it.
- name: LANG
  value: C.UTF-8
{{- end -}}

{{- define "storm.mounts" -}}
- {name: config, mountPath: /etc/storm, readOnly: true}
- {name: data, mountPath: /var/lib/storm}
- {name: logs, mountPath: /var/log/storm}
- {name: tmp, mountPath: /tmp}
{{- end -}}

{{/* Takes root, values. */}}
{{- define "storm.volumes" -}}
- name: config
  configMap: {name: {{ .root.Release.Name }}-storm}
- name: logs
  emptyDir: {}
- name: tmp
  emptyDir: {}
{{- if not .values.persistence.enabled }}
- name: data
  emptyDir: {}
{{- end }}
{{- end -}}

{{/* Takes values, whenDeleted (Retain or Delete: what becomes of the data when the release is uninstalled). */}}
{{- define "storm.claims" -}}
{{- if .values.persistence.enabled }}
persistentVolumeClaimRetentionPolicy: {whenDeleted: {{ .whenDeleted }}, whenScaled: {{ .whenDeleted }}}
volumeClaimTemplates:
  - metadata: {name: data}
    spec:
      accessModes: [ReadWriteOnce]
      {{- with .values.persistence.storageClass }}
      storageClassName: {{ . | quote }}
      {{- end }}
      resources: {requests: {storage: {{ .values.persistence.size }}}}
{{- end }}
{{- end -}}

{{/*
Probes of a daemon that is well while it accepts connections. While run-daemon.sh waits for ZooKeeper there is nothing to be
gained by ending it, and a pod that is ended again and again is started ever more slowly, also once ZooKeeper is back.
*/}}
{{- define "storm.probes" -}}
{{- $well := list "/bin/bash" "-c" (printf "[ -e /tmp/waiting ] || exec 3<>/dev/tcp/localhost/%d" (int .)) | toJson -}}
startupProbe:
  exec: {command: {{ $well }}}
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 90
readinessProbe:
  tcpSocket: {port: {{ . }}}
  periodSeconds: 5
livenessProbe:
  exec: {command: {{ $well }}}
  periodSeconds: 10
  # It runs under the CPU limit that a plan gave the pod, and a daemon that had to wait has passed its startup probe by that.
  timeoutSeconds: 30
  failureThreshold: 18
{{- end -}}
