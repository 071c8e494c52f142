{{- /*
The guard's container and what it needs of its pod. A chart that has this one as a dependency puts the sidecar into its
own pods with these, each given the subchart's context:

    include "kvguard.container" .Subcharts.kvguard      a list of one container
    include "kvguard.volumes" .Subcharts.kvguard        the pod's volumes
    include "kvguard.vllm.env" .Subcharts.kvguard       for vLLM's container, as are its mounts and its command
    include "kvguard.vllm.mounts" .Subcharts.kvguard
    include "kvguard.vllm.wrapper" .Subcharts.kvguard   what stands before vLLM's command, as a JSON list
*/ -}}

{{- define "kvguard.native" -}}
{{- $recent := semverCompare ">=1.29.0-0" .Capabilities.KubeVersion.Version }}
{{- if or (eq .Values.guard.native "always") (and (eq .Values.guard.native "auto") $recent) }}true{{ end }}
{{- end }}

{{- /* Whether the guard talks to the Kubernetes API: then its container alone gets a token. */ -}}
{{- define "kvguard.usesApi" -}}
{{- if or (eq .Values.log.from "podLog") (eq .Values.mode "outside") .Values.guard.events }}true{{ end }}
{{- end }}

{{- /* Without a number the platform gives one: OpenShift refuses any that is not from the namespace's range. */ -}}
{{- define "kvguard.user" -}}
{{- with .Values.runAsUser -}}
runAsUser: {{ int64 . }}
runAsGroup: {{ int64 . }}
{{- end }}
{{- end }}

{{- define "kvguard.restricted" -}}
runAsNonRoot: true
{{- with include "kvguard.user" . }}
{{ . }}
{{- end }}
readOnlyRootFilesystem: true
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "kvguard.podSecurityContext" -}}
runAsNonRoot: true
{{- with include "kvguard.user" . }}
{{ . }}
{{- end }}
{{- with .Values.runAsUser }}
fsGroup: {{ int64 . }}
{{- end }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "kvguard.httpGet" -}}
httpGet:
  path: {{ .path }}
  port: {{ .port }}
periodSeconds: {{ .probe.periodSeconds }}
timeoutSeconds: {{ .probe.timeoutSeconds | default 2 }}
failureThreshold: {{ .probe.failureThreshold }}
{{- end }}

{{- /* kvguard serve's arguments; "source" is what it reads. */ -}}
{{- define "kvguard.arguments" -}}
{{- $guard := .root.Values.guard }}
- serve
- --log={{ .source }}
- --slo=/etc/kvguard/slo.yaml
- --listen={{ $guard.listenAddress }}:{{ $guard.port }}
- --record=/var/lib/kvguard/record.jsonl
{{- if and (eq $guard.vllmUrl "auto") (ne .root.Values.mode "outside") }}
- --vllm-url=http://127.0.0.1:{{ .root.Values.vllm.port }}
{{- else if not (has $guard.vllmUrl (list "auto" "none")) }}
- --vllm-url={{ $guard.vllmUrl }}
{{- end }}
{{- if $guard.events }}
- --events
{{- end }}
{{- if $guard.token.secret }}
- --token-file=/etc/kvguard-token/{{ $guard.token.key }}
{{- end }}
{{- with $guard.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* One container of the guard: {root, source, native}. */ -}}
{{- define "kvguard.containerFor" -}}
{{- $root := .root }}
{{- $guard := .root.Values.guard }}
- name: kvguard
  image: {{ include "kvguard.image" $root }}
  imagePullPolicy: {{ $root.Values.image.pullPolicy }}
  {{- if .native }}
  restartPolicy: Always
  {{- end }}
  args:
    {{- include "kvguard.arguments" . | trim | nindent 4 }}
  {{- if or (include "kvguard.usesApi" $root) $guard.extraEnv }}
  env:
    {{- if include "kvguard.usesApi" $root }}
    - name: POD_NAME
      valueFrom:
        fieldRef:
          fieldPath: metadata.name
    - name: POD_NAMESPACE
      valueFrom:
        fieldRef:
          fieldPath: metadata.namespace
    {{- end }}
    {{- with $guard.extraEnv }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
  ports:
    - name: kvguard
      containerPort: {{ $guard.port }}
  # About kvguard's own start only: a native sidecar holds vLLM back until this passes.
  startupProbe:
    {{- include "kvguard.httpGet" (dict "path" "/livez" "port" "kvguard" "probe" $guard.startupProbe) | nindent 4 }}
  livenessProbe:
    {{- include "kvguard.httpGet" (dict "path" "/livez" "port" "kvguard" "probe" $guard.livenessProbe) | nindent 4 }}
  # The gate. Its mode lives in the SLO file, so that turning it needs no restart.
  readinessProbe:
    {{- include "kvguard.httpGet" (dict "path" "/readyz" "port" "kvguard" "probe" $guard.readinessProbe) | nindent 4 }}
  resources:
    {{- toYaml $guard.resources | nindent 4 }}
  securityContext:
    {{- include "kvguard.restricted" $root | nindent 4 }}
  terminationMessagePolicy: FallbackToLogsOnError
  volumeMounts:
    - name: kvguard-slo
      mountPath: /etc/kvguard
      readOnly: true
    # Which start was let through: a guard that is restarted leaves it in service.
    - name: kvguard-record
      mountPath: /var/lib/kvguard
    {{- if not (hasPrefix "pod:" .source) }}
    - name: vllm-log
      mountPath: /var/log/vllm
      readOnly: true
    {{- end }}
    {{- if $guard.token.secret }}
    - name: kvguard-access
      mountPath: /etc/kvguard-token
      readOnly: true
    {{- end }}
    {{- if include "kvguard.usesApi" $root }}
    - name: kvguard-token
      mountPath: /var/run/secrets/kubernetes.io/serviceaccount
      readOnly: true
    {{- end }}
{{- end }}

{{- define "kvguard.container" -}}
{{- $source := ternary (printf "pod:self/%s" .Values.log.container) "/var/log/vllm/vllm.log" (eq .Values.log.from "podLog") }}
{{- include "kvguard.containerFor" (dict "root" . "source" $source "native" (include "kvguard.native" .)) }}
{{- end }}

{{- define "kvguard.volumes" -}}
- name: kvguard-slo
  configMap:
    name: {{ include "kvguard.fullname" . }}-slo
- name: kvguard-record
  emptyDir:
    sizeLimit: 64Mi # twice what kvguard keeps
{{- if and (ne .Values.mode "outside") (ne .Values.log.from "podLog") }}
- name: vllm-log
  emptyDir:
    sizeLimit: {{ include "kvguard.log.sizeLimit" . }}
- name: kvguard-log-way
  configMap:
    name: {{ include "kvguard.fullname" . }}-log-way
{{- end }}
{{- with .Values.guard.token.secret }}
- name: kvguard-access
  secret:
    secretName: {{ . }}
{{- end }}
{{- if include "kvguard.usesApi" . }}
- name: kvguard-token
  projected:
    sources:
      - serviceAccountToken:
          path: token
          expirationSeconds: 3600
      - configMap:
          name: kube-root-ca.crt
          items:
            - key: ca.crt
              path: ca.crt
      - downwardAPI:
          items:
            - path: namespace
              fieldRef:
                fieldPath: metadata.namespace
{{- end }}
{{- end }}

{{- define "kvguard.vllm.env" -}}
{{- if eq .Values.log.from "tee" -}}
- name: KVGUARD_LOG_MIB
  value: {{ .Values.log.maxMiB | quote }}
{{- else if eq .Values.log.from "loggingConfig" -}}
- name: VLLM_LOGGING_CONFIG_PATH
  value: /opt/kvguard/logging.json
{{- end }}
{{- end }}

{{- define "kvguard.vllm.mounts" -}}
{{- if ne .Values.log.from "podLog" -}}
- name: vllm-log
  mountPath: /var/log/vllm
- name: kvguard-log-way
  mountPath: /opt/kvguard
  readOnly: true
{{- end }}
{{- end }}

{{- define "kvguard.vllm.wrapper" -}}
{{- if eq .Values.log.from "tee" }}{{ list "/bin/sh" "/opt/kvguard/kvguard-tee" | toJson }}{{ else }}[]{{ end }}
{{- end }}
