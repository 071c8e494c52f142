{{- /* vLLM's pod in mode standalone; the gate Job starts the same container. */ -}}

{{- define "kvguard.vllm.startupSeconds" -}}
{{- mul .Values.vllm.startupProbe.periodSeconds .Values.vllm.startupProbe.failureThreshold }}
{{- end }}

{{- define "kvguard.vllm.container" -}}
{{- $vllm := .Values.vllm }}
{{- $home := $vllm.cache.mountPath }}
{{- $serve := concat $vllm.command (list $vllm.model "--host" "0.0.0.0" "--port" (toString $vllm.port)) $vllm.args }}
{{- $command := concat (include "kvguard.vllm.wrapper" . | fromJsonArray) $serve }}
{{- $gpus := dict }}
{{- if $vllm.gpu.count }}
{{- $gpus = dict "limits" (dict $vllm.gpu.resource $vllm.gpu.count) "requests" (dict $vllm.gpu.resource $vllm.gpu.count) }}
{{- end }}
- name: vllm
  image: {{ include "kvguard.reference" $vllm.image }}
  imagePullPolicy: {{ $vllm.image.pullPolicy }}
  command: {{ slice $command 0 2 | toJson }}
  args:
    {{- slice $command 2 | toYaml | nindent 4 }}
  env:
    # A user without an entry in the image's passwd file has no home and no name; both are asked for by compilers.
    - name: HOME
      value: {{ $home }}
    - name: USER
      value: vllm
    - name: HF_HOME
      value: {{ $home }}/huggingface
    - name: VLLM_CACHE_ROOT
      value: {{ $home }}/vllm
    - name: TRITON_CACHE_DIR
      value: {{ $home }}/triton
    - name: TORCHINDUCTOR_CACHE_DIR
      value: {{ $home }}/inductor
    {{- with $vllm.huggingFaceToken }}
    {{- if .secret }}
    - name: HF_TOKEN
      valueFrom:
        secretKeyRef:
          name: {{ .secret }}
          key: {{ .key }}
    {{- end }}
    {{- end }}
    {{- include "kvguard.vllm.env" . | nindent 4 }}
    {{- with $vllm.env }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  ports:
    - name: http
      containerPort: {{ $vllm.port }}
  startupProbe:
    {{- include "kvguard.httpGet" (dict "path" "/health" "port" "http" "probe" $vllm.startupProbe) | nindent 4 }}
  livenessProbe:
    {{- include "kvguard.httpGet" (dict "path" "/health" "port" "http" "probe" $vllm.livenessProbe) | nindent 4 }}
  readinessProbe:
    {{- include "kvguard.httpGet" (dict "path" "/health" "port" "http" "probe" $vllm.readinessProbe) | nindent 4 }}
  resources:
    {{- merge (dict) $vllm.resources $gpus | toYaml | nindent 4 }}
  securityContext:
    {{- include "kvguard.user" . | fromYaml | merge (deepCopy $vllm.securityContext) | toYaml | nindent 4 }}
  volumeMounts:
    {{- include "kvguard.vllm.mounts" . | nindent 4 }}
    - name: cache
      mountPath: {{ $home }}
    - name: shm
      mountPath: /dev/shm
    - name: tmp
      mountPath: /tmp
    {{- with $vllm.extraVolumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

{{- define "kvguard.vllm.volumes" -}}
{{- $cache := .Values.vllm.cache }}
- name: cache
  {{- if or $cache.existingClaim $cache.persistent }}
  persistentVolumeClaim:
    claimName: {{ default (printf "%s-cache" (include "kvguard.fullname" .)) $cache.existingClaim }}
  {{- else }}
  emptyDir: {}
  {{- end }}
- name: shm
  emptyDir:
    medium: Memory
    sizeLimit: {{ .Values.vllm.shmSize }}
- name: tmp
  emptyDir: {}
{{- with .Values.vllm.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Where the pod may run, for the Deployment and the gate Job alike. */ -}}
{{- define "kvguard.vllm.placement" -}}
{{- $vllm := .Values.vllm }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $vllm.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $vllm.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $vllm.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $vllm.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $vllm.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- end }}
